"""The compiler: a program's graph, what it predicts, and how a run uses the prediction. Nothing is imported until something compiles."""
