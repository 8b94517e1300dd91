"""Steps of small systems as one compiled call each."""
