"""What a plan is worth, by somebody who never saw the solver.

Plain Python over the objects of `benchmarks.worlds.ordinary`, and nothing else: it
shares no code with the product, and raises on whatever it does not know.
"""
