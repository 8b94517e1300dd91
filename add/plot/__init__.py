"""Diagrams of a run, through matplotlib, which is imported when something is drawn."""

from add.plot.fits import parse_evaluations, plot_convergence, plot_landscape
from add.plot.run import experiment_names, plot_energies, plot_markers, plot_newton, plot_run
