#include "launch/devices.h"

#include <gtest/gtest.h>

#include "launch/task_plan.h"

namespace muster::launch {
namespace {

TEST(DeviceEnvironment, ShowsTheDevicesOfTheTask) {
  EXPECT_EQ(device_environment({.devices = {1, 3}, .gpu_share_milli = 1000}, {}),
            (Variables{{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                       {"CUDA_VISIBLE_DEVICES", "1,3"},
                       {"MUSTER_GPUS", "2"},
                       {"MUSTER_GPU_SHARE", "1"}}));
}

TEST(DeviceEnvironment, HidesEveryDeviceFromATaskWithoutGpus) {
  EXPECT_EQ(device_environment({}, {"GPU-a"}),
            (Variables{{"CUDA_VISIBLE_DEVICES", ""}, {"MUSTER_GPUS", "0"}}));
}

TEST(DeviceEnvironment, UsesTheNodesNamesOfDevices) {
  const auto variables = device_environment({.devices = {0, 2}}, {"GPU-a", "GPU-b"});

  EXPECT_EQ(variables.at("CUDA_VISIBLE_DEVICES"), "GPU-a,2");
}

TEST(DeviceEnvironment, ShowsTheShareOfADevice) {
  struct Case {
    int milli;
    std::string share;
    std::string percentage;
  };
  for (const Case& c : {Case{500, "0.5", "50"}, Case{250, "0.25", "25"}, Case{333, "0.333", "33"},
                        Case{999, "0.999", "99"}, Case{1, "0.001", "1"}, Case{50, "0.05", "5"}}) {
    const auto variables = device_environment({.devices = {0}, .gpu_share_milli = c.milli}, {});
    EXPECT_EQ(variables.at("MUSTER_GPU_SHARE"), c.share);
    EXPECT_EQ(variables.at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), c.percentage);
  }
}

TEST(AsksForGpus, IsTrueForWholeGpusFractionsAndMemory) {
  EXPECT_FALSE(asks_for_gpus({.resources = {.cpu_milli = 1000}}));
  EXPECT_TRUE(asks_for_gpus({.resources = {.gpus = 1}}));
  EXPECT_TRUE(asks_for_gpus({.resources = {.gpu_share_milli = 1}}));
  EXPECT_TRUE(asks_for_gpus({.resources = {.gpu_memory_bytes = 1}}));
}

}  // namespace
}  // namespace muster::launch
