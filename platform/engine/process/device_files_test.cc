#include "engine/process/device_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/test_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

class OwnDevices : public testing::Test {
 protected:
  OwnDevices() {
    for (const char* name : {"null", "sda", "kvm", "nvidia0", "nvidia1", "nvidia10", "nvidiactl",
                             "nvidia-uvm", "console", "mem"}) {
      std::ofstream(folder_ / name) << "";
    }
    fs::create_directories(folder_ / "pts");
    fs::create_directories(folder_ / "nvidia-caps");
    fs::create_symlink("/proc/self/fd", folder_ / "fd");
  }

  /// The places in /dev.
  std::vector<std::string> shown(const std::vector<std::string>& gpus) const {
    const std::vector<std::string> words = own_devices(gpus, fs::path(folder_));
    EXPECT_EQ(words[0] + " " + words[1], "--tmpfs /dev");
    std::vector<std::string> places;
    for (size_t i = 2; i + 2 < words.size(); i += 3) places.push_back(words[i + 2].substr(5));
    return places;
  }

  const base::TestFolder folder_;
};

TEST_F(OwnDevices, HasTheClaimedGpusAndTheDriversFiles) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(shown({"nvidia1"}),
            (Names{"fd", "null", "nvidia-caps", "nvidia-uvm", "nvidia1", "nvidiactl", "pts"}));
  EXPECT_EQ(shown({}), (Names{"fd", "null", "nvidia-caps", "nvidia-uvm", "nvidiactl", "pts"}));
  EXPECT_EQ(shown({"nvidia7"}), shown({})) << "the machine has no such file";
}

TEST_F(OwnDevices, KeepsLinksAndBindsAllElse) {
  const std::vector<std::string> words = own_devices({}, fs::path(folder_));

  EXPECT_EQ(words[2] + " " + words[3] + " " + words[4], "--symlink /proc/self/fd /dev/fd");
  EXPECT_EQ(words[5] + " " + words[7], "--dev-bind-try /dev/null");
}

TEST(GpuFiles, AreFoundByNumberAndUuid) {
  const base::TestFolder driver;
  // The driver counts files by age, CUDA by address.
  for (const auto& [address, minor] :
       {std::pair("0000:3b:00.0", 1), std::pair("0000:d8:00.0", 0)}) {
    fs::create_directories(driver / address);
    std::ofstream(driver / address / "information")
        << "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-" << minor << "\nDevice Minor: \t " << minor
        << "\n";
  }
  const fs::path folder(driver);
  using Names = std::vector<std::string>;
  EXPECT_EQ(gpu_files({"0"}, folder), Names{"nvidia1"});
  EXPECT_EQ(gpu_files({"GPU-0", "GPU-1"}, folder), (Names{"nvidia0", "nvidia1"}));
  EXPECT_EQ(gpu_files({"2", "GPU-7"}, folder), Names{});
  EXPECT_EQ(gpu_files({"2"}, folder / "none"), Names{"nvidia2"}) << "without a driver's list";
}

TEST(GpuFiles, AreCountedByCudaWithoutThoseOfOthers) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_among_own({"2", "5", "7"}), (Names{"0", "1", "2"}));
  EXPECT_EQ(names_among_own({"7", "2"}), (Names{"1", "0"}));
  EXPECT_EQ(names_among_own({"GPU-1", "GPU-2"}), (Names{"GPU-1", "GPU-2"}));
  EXPECT_EQ(names_among_own({}), Names{});
}

}  // namespace
}  // namespace muster::engine
