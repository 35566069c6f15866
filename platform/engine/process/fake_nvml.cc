// A replacement of NVIDIA's library for tests on machines without a GPU, with the functions that
// nvml_library.h names. Its GPUs come from the variable FAKE_NVML or, for processes with an empty
// environment, from the file libfake_nvml.so.gpus beside the library. Each line is one GPU:
//
//   NAME|MEMORY|UUID    a GPU; the function for an empty field fails
//   NAME|MEMORY|UUID|USED|PERCENT|MILLIWATTS|CELSIUS    a GPU at work
//   lost                a GPU that no longer answers
//   no-driver           nvmlInit fails
//   no-count            counting fails
//
// With FAKE_NVML_INCOMPLETE it lacks a function, like a library of another release.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

struct Memory {
  unsigned long long total, free, used;
};

struct Utilization {
  unsigned gpu, memory;
};

struct Device {
  std::string name, memory, uuid, used, percent, milliwatts, celsius;
};

constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kDriverNotLoaded = 9;
constexpr int kGpuIsLost = 15;

int sessions = 0;
std::vector<Device> devices;

std::string script() {
  if (const char* text = std::getenv("FAKE_NVML")) return text;
  Dl_info own{};
  if (::dladdr(&devices, &own) == 0) return "";
  std::ifstream file(std::string(own.dli_fname) + ".gpus");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string cut(std::string& text, char separator) {
  const size_t end = text.find(separator);
  std::string part = text.substr(0, end);
  text.erase(0, end == std::string::npos ? end : end + 1);
  return part;
}

int parse(const std::string& text, unsigned& number) {
  if (text.empty()) return kNotSupported;
  number = static_cast<unsigned>(std::stoul(text));
  return kSuccess;
}

int write(const std::string& text, char* room, unsigned length) {
  if (text.empty()) return kNotSupported;
  if (text.size() >= length) return kInsufficientSize;
  std::memcpy(room, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are NVIDIA's.
extern "C" {

int nvmlInit_v2() {
  std::string text = script();
  if (text == "no-driver") return kDriverNotLoaded;
  devices.clear();
  while (!text.empty()) {
    std::string line = cut(text, '\n');
    Device device;
    device.name = cut(line, '|');
    device.memory = cut(line, '|');
    device.uuid = cut(line, '|');
    device.used = cut(line, '|');
    device.percent = cut(line, '|');
    device.milliwatts = cut(line, '|');
    device.celsius = line;
    devices.push_back(device);
  }
  ++sessions;
  return kSuccess;
}

int nvmlShutdown() {
  --sessions;
  return kSuccess;
}

const char* nvmlErrorString(int status) {
  return status == kDriverNotLoaded ? "Driver Not Loaded"
         : status == kGpuIsLost     ? "GPU is lost"
                                    : nullptr;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  if (sessions == 0) return kUninitialized;
  if (script() == "no-count") return kInvalidArgument;
  *count = static_cast<unsigned>(devices.size());
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  if (index >= devices.size()) return kInvalidArgument;
  if (devices[index].name == "lost") return kGpuIsLost;
  *device = &devices[index];
  return kSuccess;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, Device** device) {
  for (Device& each : devices) {
    if (each.uuid != uuid) continue;
    *device = &each;
    return kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetName(const Device* device, char* name, unsigned length) {
  return write(device->name, name, length);
}

int nvmlDeviceGetUUID(const Device* device, char* uuid, unsigned length) {
  return write(device->uuid, uuid, length);
}

#ifndef FAKE_NVML_INCOMPLETE
int nvmlDeviceGetMemoryInfo(const Device* device, Memory* memory) {
  if (device->memory.empty()) return kNotSupported;
  memory->total = std::stoull(device->memory);
  memory->used = device->used.empty() ? 0 : std::stoull(device->used);
  memory->free = memory->total - memory->used;
  return kSuccess;
}
#endif

int nvmlDeviceGetUtilizationRates(const Device* device, Utilization* utilization) {
  return parse(device->percent, utilization->gpu);
}

int nvmlDeviceGetPowerUsage(const Device* device, unsigned* milliwatts) {
  return parse(device->milliwatts, *milliwatts);
}

int nvmlDeviceGetTemperature(const Device* device, int /*sensor*/, unsigned* celsius) {
  return parse(device->celsius, *celsius);
}

/// For tests: sessions that were opened and not closed.
int fake_nvml_sessions() {
  return sessions;
}
}
// NOLINTEND(readability-identifier-naming)
