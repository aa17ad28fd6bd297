"""Beside Kueue: quota is Kueue's, devices are decided here (an AdmissionCheck)."""
