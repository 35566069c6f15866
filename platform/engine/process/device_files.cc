#include "engine/process/device_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// Beside those of the C library and of terminals: fast networks (InfiniBand, GPUDirect), copies
// between processes (knem, xpmem), file systems of user namespaces, GPUs of WSL.
constexpr std::array<std::string_view, 15> kOpen{
    "null", "zero", "full", "random",     "urandom", "tty",   "ptmx", "pts",
    "shm",  "fuse", "knem", "infiniband", "gdrdrv",  "xpmem", "dxg"};
// File systems that are common to all jobs of the machine.
constexpr std::array<std::string_view, 2> kShared{"mqueue", "hugepages"};

template <class Names>
bool has_name(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The driver's own files: nvidiactl, nvidia-uvm, nvidia-caps ...
constexpr std::string_view kGpuDriver = "nvidia";

/// nvidia0, nvidia1 ...; not nvidiactl or nvidia-uvm.
bool is_numbered_gpu(std::string_view name) {
  if (!name.starts_with(kGpuDriver) || name.size() == kGpuDriver.size()) return false;
  return std::all_of(name.begin() + kGpuDriver.size(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// "GPU UUID: \t GPU-1" of a file that the driver writes.
std::string value_of(const std::string& text, std::string_view name) {
  for (const std::string& line : base::split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const size_t begin = line.find_first_not_of(" \t", name.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

struct DriverGpu {
  std::string uuid;
  std::string minor;
};

/// In the order of their addresses on the bus, in which CUDA and NVML number them.
std::vector<DriverGpu> gpus_of_driver(const fs::path& driver) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(driver, error)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<DriverGpu> gpus;
  for (const fs::path& folder : folders) {
    const auto text = base::read_file(folder / "information", 1 << 16);
    if (!text) continue;
    gpus.push_back(
        {.uuid = value_of(*text, "GPU UUID:"), .minor = value_of(*text, "Device Minor:")});
  }
  return gpus;
}

}  // namespace

std::vector<std::string> gpu_files(const std::vector<std::string>& gpus, const fs::path& driver) {
  const std::vector<DriverGpu> known = gpus_of_driver(driver);
  std::vector<std::string> files;
  for (const std::string& gpu : gpus) {
    const auto number = base::number_of<size_t>(gpu);
    std::string minor = number && known.empty() ? gpu : "";
    if (number && *number < known.size()) minor = known[*number].minor;
    for (const DriverGpu& each : known) {
      if (each.uuid == gpu) minor = each.minor;
    }
    if (!minor.empty()) files.push_back(std::string(kGpuDriver) + minor);
  }
  return files;
}

std::vector<std::string> names_among_own(const std::vector<std::string>& gpus) {
  std::vector<size_t> numbers;
  for (const std::string& gpu : gpus) {
    const auto number = base::number_of<size_t>(gpu);
    if (!number) return gpus;
    numbers.push_back(*number);
  }
  std::vector<std::string> names;
  for (const size_t number : numbers) {
    names.push_back(std::to_string(std::count_if(numbers.begin(), numbers.end(),
                                                 [&](size_t other) { return other < number; })));
  }
  return names;
}

std::vector<std::string> own_devices(const std::vector<std::string>& gpus, const fs::path& folder) {
  const auto is_open = [&](const std::string& name) {
    if (is_numbered_gpu(name)) return has_name(gpus, name);
    return name.starts_with(kGpuDriver) || has_name(kOpen, name);
  };
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry);
  std::sort(entries.begin(), entries.end());
  std::vector<std::string> words{"--dev-bind", folder.string(), "/dev"};
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    const std::string place = "/dev/" + name;
    if (is_open(name) || entry.is_symlink(error)) continue;
    const bool is_folder = entry.is_directory(error);
    const char* const path = entry.path().c_str();
    if (!is_folder && ::access(path, R_OK) != 0 && ::access(path, W_OK) != 0) continue;
    if (has_name(kShared, name)) {
      add({"--tmpfs", place});
    } else if (is_folder || entry.is_block_file(error) || entry.is_character_file(error)) {
      add({"--bind", entry.path().string(), place});
    } else {
      add({"--ro-bind", "/dev/null", place});
    }
  }
  return words;
}

}  // namespace muster::engine
