# One virtual environment for people and CI. `make demo` and `make test` work on a fresh machine with Python >= 3.11.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
PY     := $(VENV)/bin/python
# The CPU build that the tests were measured with. On a machine where pip would take a CUDA build of several GB, point pip
# at the CPU wheels (`make TORCH_ARGS="--index-url URL" ...`); for a GPU, ask for it: `make TORCH=torch ...`.
TORCH      ?= torch==2.13.0
TORCH_ARGS ?=
MODEL      ?= smollm2-135m
NATIVE     := kernels/cpu/_native.so grammar/_native.so

.PHONY: demo test test-data lint bench bench-grammar bench-serve soak clean

$(VENV)/.installed: pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): 3 to 6 minutes, 2.5 GB"
	$(PY) -m pip install --quiet --disable-pip-version-check $(TORCH) $(TORCH_ARGS)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@

# The install builds the native kernels; this rebuilds them in place after a change. Without a compiler the reference kernels serve.
kernels/cpu/_native.so: $(wildcard kernels/cpu/src/*) kernels/build_native.py | $(VENV)/.installed
	-$(PY) kernels/build_native.py $@

grammar/_native.so: $(wildcard grammar/native/src/*) kernels/build_native.py | $(VENV)/.installed
	-$(PY) kernels/build_native.py $@

# A program forks, shares its prefix, chooses and fills a JSON Schema on a real chat model.
demo: $(VENV)/.installed $(NATIVE)
	$(PY) -m radixlm pull $(MODEL)
	$(PY) examples/demo.py

test: $(VENV)/.installed $(NATIVE)
	$(PY) -m radixlm pull $(MODEL)
	$(PY) -m pytest -m "not data" --numprocesses 2 --dist loadfile

# Tests over the shared data files (../shared); they skip with a reason where the files are absent.
test-data: $(VENV)/.installed $(NATIVE)
	$(PY) -m radixlm pull $(MODEL)
	$(PY) -m pytest -m data

lint: $(VENV)/.installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports

# Ratios against transformers in one run; quote medians and ratios, never single absolute times.
bench: $(VENV)/.installed $(NATIVE)
	$(PY) -m radixlm pull $(MODEL)
	for bench in tests/bench/bench_*.py; do $(PY) $$bench || exit 1; done

# Exactness and speed of grammars on the shared data, beside a peer where PEER_PYTHON names a Python that has llguidance.
bench-grammar: $(VENV)/.installed $(NATIVE)
	$(PY) -m radixlm pull $(MODEL)
	$(PY) tests/bench/bench_grammar.py $(if $(PEER_PYTHON),--peer-python $(PEER_PYTHON))

# The server beside OpenVINO and llama.cpp on nine workloads; PEERS is where ../shared/bench/peers/install.sh put them, TOKENIZER a folder
# with the model's tokenizer.json. About 4 minutes a server and round.
bench-serve: $(VENV)/.installed $(NATIVE)
	$(PY) -m radixlm pull $(MODEL)
	$(PY) tests/bench/serve_race.py --rounds $(or $(ROUNDS),3) $(if $(PEERS),--peers $(PEERS)) $(if $(TOKENIZER),--tokenizer $(TOKENIZER)) $(if $(OUT),--out $(OUT))

# The whole server under 100 mixed clients for three minutes: faults, memory and the event loop's lag.
soak: $(VENV)/.installed $(NATIVE)
	$(PY) -m radixlm pull $(MODEL)
	$(PY) tests/bench/soak.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
