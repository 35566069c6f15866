// The /dev of a task on a team server: the devices that every program may need, and of the GPUs
// those alone that the task has claimed. Disks, terminals of the console and the GPUs of others are
// not there.
//
// Pure but for a look at the machine's /dev.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::engine {

/// The files of GPUs that CUDA_VISIBLE_DEVICES names so: by numbers or UUIDs. A GPU that the driver
/// does not list has none. `driver`: where the driver lists them. Without a list, a number is that
/// of the file.
std::vector<std::string> gpu_files(
    const std::vector<std::string>& gpus,
    const std::filesystem::path& driver = "/proc/driver/nvidia/gpus");

/// What CUDA_VISIBLE_DEVICES calls them in a /dev that has the files of these GPUs alone: CUDA gives
/// numbers to the GPUs that it can open. UUIDs stay as they are.
std::vector<std::string> names_among_own(const std::vector<std::string>& gpus);

/// The words for bubblewrap that make a /dev with these entries of `folder`. `gpus`: names of the
/// files of the claimed GPUs, as in nvidia0. A name that `folder` lacks is left out.
///
/// The mount is writable: what lies below it, such as /dev/shm, is mounted by the caller, who then
/// makes it read-only.
std::vector<std::string> own_devices(const std::vector<std::string>& gpus,
                                     const std::filesystem::path& folder = "/dev");

}  // namespace muster::engine
