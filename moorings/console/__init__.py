"""The web console: what the bus says as a page that follows it, and what-if questions.

Pure modules make what is shown; `following`, `solving` and `server` are the shell. The
page lies in `static/`: plain modules that a browser runs as they are.
"""
