// The /dev of a task on a team server: it can open the devices that every program may need, and
// only the GPUs that it has claimed. Disks, the consoles and the GPUs of others stay closed.
//
// A closed device is bound over itself without the right to open devices (nodev), so that opening
// it fails as with a control group of devices. A /dev with only some of the machine's entries is
// not an alternative: only a /dev/ptmx beside pts in its own file system can create terminals, and
// not one that is bound to another place.
//
// Pure but for a look at the machine's /dev.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::engine {

/// The device files of GPUs that are named as in CUDA_VISIBLE_DEVICES, by numbers or UUIDs. A GPU
/// that the driver does not list has no file. `driver`: where the driver lists them. Without a
/// list, a number is that of the file.
std::vector<std::string> gpu_files(
    const std::vector<std::string>& gpus,
    const std::filesystem::path& driver = "/proc/driver/nvidia/gpus");

/// Their names in CUDA_VISIBLE_DEVICES if a task can open only these GPUs: CUDA gives numbers to
/// the GPUs that it can open. UUIDs stay as they are.
std::vector<std::string> names_among_own(const std::vector<std::string>& gpus);

/// The arguments of bubblewrap that show `folder` as /dev and close the devices to which a task has
/// no right. `gpus`: names of the files of the claimed GPUs, as in nvidia0. Devices that this
/// account cannot open anyway are left unchanged.
std::vector<std::string> own_devices(const std::vector<std::string>& gpus,
                                     const std::filesystem::path& folder = "/dev");

}  // namespace muster::engine
