"""What a graph says about a distribution: separation, chordal graphs, junction trees, directed graphs."""
