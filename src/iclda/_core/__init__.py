"""The mathematics: arrays in, arrays out. Knows no scikit-learn, no pandas, no Dask."""
