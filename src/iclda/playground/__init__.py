"""The playground: a page in the browser on which fits follow the points.

``toys`` draws points to begin with, ``scenes`` fits what the page sends, and ``server``
has the site with both.
"""

from .server import playground_site

__all__ = ["playground_site"]
