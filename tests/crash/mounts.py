"""How a test gets a mount namespace of its own."""
import shutil
import subprocess


def _works(words):
    return shutil.which("unshare") is not None and subprocess.run(
        [*words, "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True).returncode == 0


# In a chroot / is no mount point, so that unshare cannot make it private; where that is so, somebody has made a namespace already.
_WAYS = (["unshare", "-m"], ["unshare", "-m", "--propagation", "unchanged"])
UNSHARE = next((words for words in _WAYS if _works(words)), ["unshare", "-m"])
CAN_MOUNT = _works(UNSHARE)
