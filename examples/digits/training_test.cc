#include "training.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::digits {
namespace {

TEST(Progress, WritesAnEpochAsAnObject) {
  const EpochReport report{.epoch = 3,
                           .seconds = 0.25,
                           .images = 4320,
                           .loss = 0.5,
                           .train_accuracy = 0.875,
                           .test_accuracy = 0.9375,
                           .images_per_second = 17280};
  EXPECT_EQ(epoch_json(report),
            R"({"epoch": 3, "seconds": 0.25, "images": 4320, "images_per_second": 17280, )"
            R"("loss": 0.5, "train_accuracy": 0.875, "test_accuracy": 0.9375})");
}

TEST(Progress, WritesNullForALossThatIsNotFinite) {
  EpochReport report{};
  report.loss = std::numeric_limits<double>::infinity();
  EXPECT_NE(epoch_json(report).find(R"("loss": null)"), std::string::npos);
}

TEST(Progress, WritesTheOutcomeAsAnObject) {
  EXPECT_EQ(outcome_json({.test_accuracy = 0.975, .images_per_second = 97315, .checksum = 0xabcu}),
            R"({"test_accuracy": 0.975, "images_per_second": 97315, )"
            R"("weights_checksum": "0x0000000000000abc"})");
}

}  // namespace
}  // namespace muster::digits
