"""DP-SVD: joint noise on the leading singular values."""
