"""The playground: a page in the browser, served on this machine, on which fits follow the points.

``scenes`` has the points to begin with and the fits to those of the page, ``server`` the page.
"""
