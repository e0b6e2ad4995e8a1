"""The paper's experiments, and some beyond it, as commands: ``ratebound reproduce NAME``.

Each module but the first few is one `Experiment`: what one run measures, the figures, and the
claims that its results are held against. `running` repeats runs and keeps what they measured,
`writing` makes the summary and figures of it.
"""
