"""What somebody wants to hand in, looked at before anything is sent: nothing is unpacked to disk, nothing is kept."""
