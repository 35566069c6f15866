#include "report.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::resnet20 {
namespace {

// Speeds of 100 and 300 images/s: 2 steps of 10 images in 0.1333 s.
TEST(Speed, CoversAllStepsSoFar) {
  const Speed speed = speed_of({0.1, 10.0 / 300}, 10);
  EXPECT_NEAR(speed.mean, 150, 1e-9);
  EXPECT_NEAR(speed.uncertainty, 100 / std::sqrt(2), 1e-9);
  EXPECT_NEAR(speed.jitter, 148.26, 1e-9);
  EXPECT_EQ(speed_of({0.5}, 10).jitter, 0);
}

TEST(Report, HasTheLinesOfTfCnnBenchmarks) {
  EXPECT_EQ(text_of(StepLine{10, {148.06, 0.31, 0.55}, 2.3451}),
            "10\timages/sec: 148.1 +/- 0.3 (jitter = 0.6)\t2.345\n");
  const std::string text = text_of(Summary{295.853, std::nan(""), {7, 7}});
  EXPECT_EQ(text,
            "----------------------------------------------------------------\n"
            "total images/sec: 295.85\n"
            "----------------------------------------------------------------\n"
            "rank 0: weights checksum 0x0000000000000007\n"
            "rank 1: weights checksum 0x0000000000000007\n");
  EXPECT_TRUE(text_of_start({}, 2, 10).ends_with("Step\tImg/sec\ttotal_loss\n"));
}

TEST(Report, ReportsDifferentWeights) {
  EXPECT_TRUE(text_of(Summary{1, 0.5, {7, 8}}).ends_with("the ranks have different weights\n"));
}

TEST(Report, IsOneObjectPerLineForPrograms) {
  EXPECT_EQ(
      json_of(StepLine{1, {8, 0, 0.5}, 2.5}),
      "{\"step\": 1, \"images_per_second\": 8, \"uncertainty\": 0, \"jitter\": 0.5, \"loss\": "
      "2.5}\n");
  EXPECT_EQ(json_of(Summary{8, std::nan(""), {255}}),
            "{\"total_images_per_second\": 8, \"test_accuracy\": null, \"weights_checksums\": "
            "[\"0x00000000000000ff\"]}\n");
}

TEST(Checksum, IsFnv1a) {
  EXPECT_EQ(checksum_of("a", 1), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(checksum_of("b", 1, checksum_of("a", 1)), checksum_of("ab", 2));
}

}  // namespace
}  // namespace muster::resnet20
