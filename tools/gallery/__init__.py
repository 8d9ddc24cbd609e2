"""The gallery: scripts in docs/gallery become executed pages with pictures, and notebooks."""
