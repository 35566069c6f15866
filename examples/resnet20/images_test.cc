#include "images.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace muster::resnet20 {
namespace {

std::string record(int label, char pixel) {
  return static_cast<char>(label) + std::string(kPixels, pixel);
}

class Cifar : public ::testing::Test {
 protected:
  Cifar() {
    folder_ = (std::filesystem::temp_directory_path() / "cifar-test-XXXXXX").string();
    folder_ = ::mkdtemp(folder_.data());
  }
  ~Cifar() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }

  std::string folder_;
};

TEST_F(Cifar, IsReadFileByFile) {
  write("data_batch_1.bin", record(3, 'a') + record(9, 'b'));
  write("data_batch_2.bin", record(0, 'c'));
  write("test_batch.bin", record(7, 'd'));
  const auto data = load_cifar(folder_);
  ASSERT_TRUE(data) << data.error().front();
  EXPECT_EQ(data->train.labels, (std::vector<std::uint8_t>{3, 9, 0}));
  EXPECT_EQ(data->train.pixels.size(), 3 * kPixels);
  EXPECT_EQ(data->train.pixels[2 * kPixels], 'c');
  EXPECT_EQ(data->test.labels, std::vector<std::uint8_t>{7});
}

TEST_F(Cifar, IsRejectedWithAllFaults) {
  write("data_batch_1.bin", record(1, 'a') + "more");
  write("data_batch_2.bin", record(0, 'a') + record(10, 'b'));
  write("data_batch_3.bin", "");
  const auto data = load_cifar(folder_);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error(),
            (std::vector<std::string>{
                folder_ + "/data_batch_1.bin has 3077 bytes, which is not a multiple of the image "
                          "size of 3073 bytes (the binary version of CIFAR-10 is required)",
                folder_ + "/data_batch_2.bin has the label 10 at image 1; the classes are 0 to 9",
                folder_ + "/data_batch_3.bin has 0 bytes, which is not a multiple of the image "
                          "size of 3073 bytes (the binary version of CIFAR-10 is required)",
                "cannot open " + folder_ + "/test_batch.bin: No such file or directory"}));
}

TEST_F(Cifar, IsRejectedIfTheFolderDoesNotExist) {
  const auto data = load_cifar(folder_ + "/nowhere");
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().size(), 2u);
}

TEST(SyntheticImages, AreEqualForEqualSeeds) {
  const Dataset data = synthetic_images(25, 5, 1);
  EXPECT_EQ(data.train.size(), 25u);
  EXPECT_EQ(data.test.size(), 5u);
  EXPECT_EQ(data.train.pixels, synthetic_images(25, 5, 1).train.pixels);
  EXPECT_NE(data.train.pixels, synthetic_images(25, 5, 2).train.pixels);
}

TEST(Batches, ContainTheRequestedSamplesNormalised) {
  ImageSet set{.pixels = std::vector<std::uint8_t>(2 * kPixels, 0), .labels = {4, 6}};
  set.pixels[kPixels] = 255;
  std::vector<float> pixels(2 * kPixels);
  std::vector<std::int64_t> labels(2);
  const std::vector<std::uint64_t> samples = {1, 0};
  fill_batch(set, samples, pixels.data(), labels.data());
  EXPECT_EQ(labels, (std::vector<std::int64_t>{6, 4}));
  EXPECT_NEAR(pixels[0], (1 - 0.4914) / 0.2470, 1e-5);
  EXPECT_NEAR(pixels[1], -0.4914 / 0.2470, 1e-5);
  EXPECT_NEAR(pixels[2 * kPixels - 1], -0.4465 / 0.2616, 1e-5);
}

}  // namespace
}  // namespace muster::resnet20
