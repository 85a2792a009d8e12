"""`python -m experiments`: the commands of the research that stands beside the product."""

from experiments.cli import main

if __name__ == "__main__":
    main()
