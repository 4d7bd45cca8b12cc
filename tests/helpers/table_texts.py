"""Small tables as text, written to files and read."""

from iclda.tabular import read_table

TEXT = "size,color,class\n1.5,red,a\n2,blue,b\n,red,\n4,,\n"


def write(folder, text, name="data.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def read(folder, text, name="data.csv", target="class", **options):
    return read_table(write(folder, text, name), target=target, **options)
