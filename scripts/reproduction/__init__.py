"""The figures and tables of ADD (Geilinger et al. 2020), one module each; `scripts/reproduce.py` runs them."""
