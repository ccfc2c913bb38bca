# %% text, and the value of the last expression
import sys

print("Python", ".".join(map(str, sys.version_info[:3])))
squares = {n: n * n for n in range(1, 6)}
squares

# %% variables stay from cell to cell
sum(squares.values())

# %% top-level await
import asyncio

await asyncio.sleep(0.01)
"awake"

# %% the shell
files = !ls
len(files) > 0

# %% a table, if pandas is installed
try:
    import pandas
except ImportError:
    print("no pandas here")
else:
    display(pandas.DataFrame({"n": squares.keys(), "n²": squares.values()}))

# %% a plot, if matplotlib is installed
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("no matplotlib here")
else:
    plt.plot(list(squares), list(squares.values()))

# %% an error that was handled
try:
    1 / 0
except ZeroDivisionError as error:
    print("handled:", error)
