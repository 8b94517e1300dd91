"""Forces between sites of bodies: springs, hinges, sliders, motors, loads."""
