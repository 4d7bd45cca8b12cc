"""The playground: a page in the browser, served on this machine, on which fits follow the points.

``fits`` has what the page shows of a scene, ``toys`` the scenes to begin with, ``server`` the page.
"""
