// Reads the blocks that encoding.py writes. Nothing here trusts a count without checking it.

#include <algorithm>

#include "compile_dag.h"

namespace radix_compile {
namespace {

class Reader {
public:
    explicit Reader(const Encoded& encoded) : encoded_(encoded) {}

    bool is_done() const { return position_ == encoded_.words.size(); }
    int64_t word() { return take(1)[0]; }
    View<int64_t> take(int64_t count) {
        check(count >= 0 && uint64_t(count) <= encoded_.words.size() - position_);
        View<int64_t> found{encoded_.words.begin() + position_, size_t(count)};
        position_ += size_t(count);
        return found;
    }
    View<uint8_t> text(int64_t size) {
        check(size >= 0 && uint64_t(size) <= encoded_.texts.size() - text_position_);
        View<uint8_t> found{encoded_.texts.begin() + text_position_, size_t(size)};
        text_position_ += size_t(size);
        return found;
    }
    Bits256 mask() {
        check(encoded_.masks.size() - mask_position_ >= sizeof(Bits256::word));
        Bits256 mask;
        std::memcpy(mask.word, encoded_.masks.begin() + mask_position_, sizeof mask.word);
        mask_position_ += sizeof mask.word;
        return mask;
    }
    static void check(bool is_right) {
        if (!is_right) throw CompileError{"encoding", "the encoded grammar is damaged"};
    }

private:
    Encoded encoded_;
    size_t position_ = 0;
    size_t text_position_ = 0, mask_position_ = 0;
};

void read_choice(Reader& reader, Node& node) {
    node.info = reader.take(reader.word());
    int64_t total = 0;
    for (int64_t size : node.info) {
        Reader::check(size >= 0 && size <= INT32_MAX);
        total += size;
    }
    node.text = reader.text(total);
}

// The texts are sorted and differ, and there is one.
void check_listed(const Node& node) {
    Reader::check(node.info.size() > 0);
    const uint8_t* text = node.text.begin();
    for (size_t i = 1; i < node.info.size(); ++i) {
        const uint8_t* after = text + node.info[i - 1];
        Reader::check(std::lexicographical_compare(text, after, after, after + node.info[i]));
        text = after;
    }
}

void read_members(Reader& reader, Node& node) {
    int64_t num_kids = reader.word(), num_info = reader.word();
    node.lo = reader.word();
    node.hi = reader.word();
    node.info = reader.take(num_info);
    node.kid_ids = reader.take(num_kids);
    Reader::check(num_kids >= 1 && num_info >= num_kids + 1);  // a separator; order, runs, number of clauses
}

void read_single(Reader& reader, Node& node) {
    switch (node.kind) {
        case Kind::Chars: {
            int64_t count = reader.word();
            Reader::check(count >= 0 && count <= INT32_MAX);
            node.info = reader.take(2 * count);
            break;
        }
        case Kind::Minus:
            node.kid_ids = reader.take(2);
            break;
        case Kind::Erase:
            node.mask = reader.mask();
            node.kid_ids = reader.take(1);
            break;
        case Kind::Members:
            read_members(reader, node);
            break;
        case Kind::Unlisted:
            read_choice(reader, node);
            node.mask = reader.mask();
            node.kid_ids = reader.take(2);
            check_listed(node);
            break;
        default:
            read_choice(reader, node);
    }
}

// What `count` expressions of one kind hold, column by column.
void read_block(Reader& reader, Node* nodes, int64_t count) {
    switch (nodes->kind) {
        case Kind::Bytes:
            for (int64_t i = 0; i < count; ++i) nodes[i].mask = reader.mask();
            break;
        case Kind::Lit: {
            View<int64_t> sizes = reader.take(count);
            for (int64_t i = 0; i < count; ++i) nodes[i].text = reader.text(sizes[size_t(i)]);
            break;
        }
        case Kind::Seq:
        case Kind::Alt:
        case Kind::And: {
            View<int64_t> sizes = reader.take(count);
            for (int64_t i = 0; i < count; ++i) nodes[i].kid_ids = reader.take(sizes[size_t(i)]);
            break;
        }
        case Kind::Repeat: {
            View<int64_t> lo = reader.take(count), hi = reader.take(count);
            for (int64_t i = 0; i < count; ++i) {
                nodes[i].lo = lo[size_t(i)];
                nodes[i].hi = hi[size_t(i)];
                nodes[i].kid_ids = reader.take(1);
            }
            break;
        }
        case Kind::Ref:
            for (int64_t i = 0; i < count; ++i) nodes[i].kid_ids = reader.take(1);
            break;
        default:
            for (int64_t i = 0; i < count; ++i) read_single(reader, nodes[i]);
    }
}

}  // namespace

int64_t read_records(const Encoded& encoded, std::vector<Node>& nodes, std::vector<int64_t>& ids) {
    Reader reader(encoded);
    int64_t whole = reader.word();
    while (!reader.is_done()) {
        int64_t kind = reader.word(), count = reader.word();
        Reader::check(kind >= 0 && kind <= int64_t(Kind::Unlisted));
        View<int64_t> block_ids = reader.take(count);
        if (count == 0) continue;
        ids.insert(ids.end(), block_ids.begin(), block_ids.end());
        size_t first = nodes.size();
        nodes.resize(first + size_t(count));
        for (size_t i = first; i < nodes.size(); ++i) nodes[i].kind = Kind(kind);
        read_block(reader, nodes.data() + first, count);
        for (size_t i = first; i < nodes.size(); ++i) {
            Reader::check(nodes[i].kid_ids.size() <= INT32_MAX);
            nodes[i].num_kids = int32_t(nodes[i].kid_ids.size());
        }
    }
    return whole;
}

}  // namespace radix_compile
