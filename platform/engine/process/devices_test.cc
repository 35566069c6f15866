#include "engine/process/devices.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

/// Sets the GPUs of the fake NVML library (fake_nvml.cc) while this object exists.
class FakeNvml {
 public:
  explicit FakeNvml(const std::string& script) { ::setenv("FAKE_NVML", script.c_str(), 1); }
  ~FakeNvml() { ::unsetenv("FAKE_NVML"); }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  /// The number of sessions of the fake library that were opened and not closed.
  static int open_sessions() {
    void* handle = ::dlopen(MUSTER_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    using Count = int();
    return reinterpret_cast<Count*>(::dlsym(handle, "fake_nvml_sessions"))();
  }
};

class DeviceFolder : public testing::Test {
 protected:
  DeviceFolder() {
    std::string pattern = testing::TempDir() + "devicesXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~DeviceFolder() override { fs::remove_all(folder_); }

  void add(const std::string& name) { std::ofstream(folder_ / name) << ""; }

  fs::path folder_;
};

TEST(AskNvml, ReportsModelMemoryAndUuidOfEachGpu) {
  const FakeNvml fake(
      "NVIDIA A100-SXM4-80GB|85899345920|GPU-1\nNVIDIA A100-SXM4-80GB|85899345920|GPU-2");

  const auto found = ask_nvml(MUSTER_FAKE_NVML);

  ASSERT_TRUE(found) << found.error().to_string();
  const Gpu first{.model = "NVIDIA A100-SXM4-80GB", .memory_bytes = 80 * kGiB, .uuid = "GPU-1"};
  ASSERT_EQ(found->gpus.size(), 2U);
  EXPECT_EQ(found->gpus[0], first);
  EXPECT_EQ(found->gpus[1].uuid, "GPU-2");
  EXPECT_EQ(FakeNvml::open_sessions(), 0);
}

TEST(AskNvml, KeepsAGpuWithoutAName) {
  const FakeNvml fake("||\nT4||");

  const auto found = ask_nvml(MUSTER_FAKE_NVML);

  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpus, (std::vector<Gpu>{{}, {.model = "T4"}}));
}

TEST(AskNvml, LeavesOutALostGpuWithASentence) {
  const FakeNvml fake("T4|1|GPU-1\nlost\nT4|1|GPU-3");

  const auto found = ask_nvml(MUSTER_FAKE_NVML);

  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpus.size(), 2U);
  EXPECT_EQ(found->unreached, std::vector<std::string>{"GPU 1 cannot be reached: GPU is lost"});
}

TEST(AskNvml, ABrokenDriverIsUnavailable) {
  for (const auto& [script, words] : std::vector<std::pair<std::string, std::string>>{
           {"no-driver", "Driver Not Loaded"}, {"no-count", "error 2"}}) {
    const FakeNvml fake(script);

    const auto found = ask_nvml(MUSTER_FAKE_NVML);

    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, base::ErrorCode::kUnavailable);
    EXPECT_EQ(found.error().what, "the driver of the GPUs does not work: " + words);
    EXPECT_EQ(FakeNvml::open_sessions(), 0);
  }
}

TEST(AskNvml, AMissingLibraryOrFunctionIsNotFound) {
  const auto missing = ask_nvml("/no/such/libnvidia-ml.so.1");
  const auto incomplete = ask_nvml(MUSTER_FAKE_NVML_INCOMPLETE);
  const auto no_library = ask_nvml("/etc/passwd");

  ASSERT_FALSE(missing);
  ASSERT_FALSE(incomplete);
  ASSERT_FALSE(no_library);
  EXPECT_EQ(missing.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(incomplete.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(no_library.error().code, base::ErrorCode::kNotFound);
  EXPECT_NE(incomplete.error().what.find("nvmlDeviceGetMemoryInfo"), std::string::npos);
}

TEST(Offer, OffersEqualGpusByNumberWithTheirSmallestMemory) {
  const NvmlGpus found{.gpus = {{.model = "A100", .memory_bytes = 80 * kGiB, .uuid = "a"},
                                {.model = "A100", .memory_bytes = 40 * kGiB, .uuid = "b"}}};

  EXPECT_EQ(offer(found), (OfferedGpus{.count = 2, .model = "A100", .memory_bytes = 40 * kGiB}));
}

TEST(Offer, OffersTheMostFrequentModelByUuid) {
  const NvmlGpus found{.gpus = {{.model = "A100", .memory_bytes = 80 * kGiB, .uuid = "a"},
                                {.model = "T4", .memory_bytes = 16 * kGiB, .uuid = "b"},
                                {.model = "T4", .memory_bytes = 16 * kGiB, .uuid = "c"}}};

  EXPECT_EQ(offer(found),
            (OfferedGpus{.count = 2,
                         .model = "T4",
                         .memory_bytes = 16 * kGiB,
                         .names = {"b", "c"},
                         .left_out = {"1 GPU of model 'A100': the node offers only model 'T4'"}}));
}

TEST(Offer, OffersTheLargerOfTwoEquallyFrequentModels) {
  const NvmlGpus found{.gpus = {{.model = "T4", .memory_bytes = 16 * kGiB, .uuid = "b"},
                                {.model = "A100", .memory_bytes = 80 * kGiB, .uuid = "a"}}};

  EXPECT_EQ(offer(found).model, "A100");
}

TEST(Offer, NamesByUuidIfAGpuDoesNotAnswer) {
  const NvmlGpus found{.gpus = {{.model = "T4", .uuid = "b"}}, .unreached = {"GPU 0 is lost"}};

  EXPECT_EQ(offer(found).names, std::vector<std::string>{"b"});
  EXPECT_EQ(offer(found).left_out, std::vector<std::string>{"GPU 0 is lost"});
}

TEST(Offer, StopsAtTheLimitOfANode) {
  const NvmlGpus found{.gpus = std::vector<Gpu>(70, {.model = "T4", .uuid = "x"})};

  EXPECT_EQ(offer(found).count, 64);
  EXPECT_EQ(offer(found).left_out, std::vector<std::string>{"6 GPUs: a node has at most 64"});
}

TEST(Offer, OfNoGpusIsNone) {
  EXPECT_EQ(offer({}), OfferedGpus{});
}

TEST_F(DeviceFolder, CountsDeviceFilesWithoutNvml) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia", "null"}) {
    add(name);
  }

  EXPECT_EQ(offer_gpus("/no/such/libnvidia-ml.so.1", folder_), (OfferedGpus{.count = 2}));
}

TEST_F(DeviceFolder, IsIgnoredIfNvmlAnswers) {
  const FakeNvml fake("T4|17179869184|GPU-1");
  add("nvidia0");
  add("nvidia1");

  EXPECT_EQ(offer_gpus(MUSTER_FAKE_NVML, folder_),
            (OfferedGpus{.count = 1, .model = "T4", .memory_bytes = 16 * kGiB}));
}

TEST_F(DeviceFolder, OffersNothingIfTheDriverDoesNotWork) {
  const FakeNvml fake("no-driver");
  add("nvidia0");

  EXPECT_EQ(offer_gpus(MUSTER_FAKE_NVML, folder_),
            (OfferedGpus{
                .left_out = {"1 GPU: the driver of the GPUs does not work: Driver Not Loaded"}}));
}

TEST_F(DeviceFolder, OfAMachineWithoutGpusHasNone) {
  EXPECT_EQ(offer_gpus("/no/such/libnvidia-ml.so.1", folder_), OfferedGpus{});
  EXPECT_EQ(offer_gpus("/no/such/libnvidia-ml.so.1", folder_ / "missing"), OfferedGpus{});
}

}  // namespace

}  // namespace muster::engine
