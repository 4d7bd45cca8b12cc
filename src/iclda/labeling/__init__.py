"""Labeling: a person labels the rows that help a model most, in a file or on a page.

`pool` has the rows, `answers` the file in which a person labels some of them, and
`project` joins both: it draws the next rows to ask for and estimates the error. With
`rounds` a person fills in the file (``iclda ask``); on the page, which `session`,
`shown` and `server` make, a click is an answer (``iclda label``).
"""
