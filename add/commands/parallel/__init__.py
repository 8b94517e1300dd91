"""Several scenes or experiments at once: threads, processes, a Dask cluster."""
