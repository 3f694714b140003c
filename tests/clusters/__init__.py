"""Derivatives across processes: dask and MPI."""
