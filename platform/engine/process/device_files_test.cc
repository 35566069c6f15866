#include "engine/process/device_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/test_folder.h"
#include "base/text.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

class OwnDevices : public testing::Test {
 protected:
  OwnDevices() {
    for (const char* name :
         {"null", "log", "nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm"}) {
      std::ofstream(folder_ / name) << "";
    }
    for (const char* name : {"pts", "nvidia-caps", "mapper", "mqueue"}) {
      fs::create_directories(folder_ / name);
    }
    fs::create_symlink("/proc/self/fd", folder_ / "fd");
  }

  std::string words(const std::vector<std::string>& gpus) const {
    const std::vector<std::string> all = own_devices(gpus, fs::path(folder_));
    EXPECT_EQ(all[0] + " " + all[1] + " " + all[2],
              "--dev-bind " + fs::path(folder_).string() + " /dev");
    return base::joined({all.begin() + 3, all.end()}, " ");
  }

  const base::TestFolder folder_;
};

TEST_F(OwnDevices, CloseTheGpusOfOthersAndLeaveTheDriversFiles) {
  // Files that are no devices stand in for some here: they are covered instead.
  const std::string mapper = (folder_ / "mapper").string();
  EXPECT_EQ(words({"nvidia1"}),
            "--ro-bind /dev/null /dev/log --bind " + mapper +
                " /dev/mapper --tmpfs /dev/mqueue --ro-bind /dev/null /dev/nvidia0 "
                "--ro-bind /dev/null /dev/nvidia10");
  EXPECT_NE(words({}).find("/dev/nvidia1 "), std::string::npos);
  EXPECT_EQ(words({"nvidia7"}), words({})) << "the machine has no such file";
}

TEST(OwnDevicesOfTheMachine, CloseDevicesByBindingThemWithoutTheRightToOpenThem) {
  const std::string words = base::joined(own_devices({}), " ");

  EXPECT_EQ(words.find("/dev/null"), std::string::npos) << words;
  EXPECT_EQ(words.find("/dev/ptmx"), std::string::npos) << words;
  if (fs::is_character_file("/dev/kmsg") && ::access("/dev/kmsg", R_OK) == 0) {
    EXPECT_NE(words.find("--bind /dev/kmsg /dev/kmsg"), std::string::npos) << words;
  }
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
  const fs::path& folder = driver;
  using Names = std::vector<std::string>;
  EXPECT_EQ(gpu_files({"0"}, folder), Names{"nvidia1"});
  EXPECT_EQ(gpu_files({"GPU-0", "GPU-1"}, folder), (Names{"nvidia0", "nvidia1"}));
  EXPECT_EQ(gpu_files({"2", "GPU-7"}, folder), Names{});
  EXPECT_EQ(gpu_files({"2"}, folder / "none"), Names{"nvidia2"}) << "without a driver's list";
}

TEST(GpuFiles, AreNumberedByCudaWithoutTheGpusOfOtherTasks) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_among_own({"2", "5", "7"}), (Names{"0", "1", "2"}));
  EXPECT_EQ(names_among_own({"7", "2"}), (Names{"1", "0"}));
  EXPECT_EQ(names_among_own({"GPU-1", "GPU-2"}), (Names{"GPU-1", "GPU-2"}));
  EXPECT_EQ(names_among_own({}), Names{});
}

}  // namespace
}  // namespace muster::engine
