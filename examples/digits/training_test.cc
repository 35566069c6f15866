#include "training.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::digits {
namespace {

constexpr EpochReport kThird{.epoch = 3,
                             .seconds = 0.25,
                             .images = 4320,
                             .loss = 0.5,
                             .train_accuracy = 0.875,
                             .test_accuracy = 0.9375,
                             .images_per_second = 17280};

TEST(Progress, WritesAnEpochAsAnObject) {
  EXPECT_EQ(epoch_json(kThird),
            R"({"epoch": 3, "seconds": 0.25, "images": 4320, "images_per_second": 17280, )"
            R"("loss": 0.5, "train_accuracy": 0.875, "test_accuracy": 0.9375})");
}

TEST(Progress, WritesNullForALossThatIsNotFinite) {
  EpochReport report{};
  report.loss = std::numeric_limits<double>::infinity();
  EXPECT_NE(epoch_json(report).find(R"("loss": null)"), std::string::npos);
}

// The report of a chief that joined after the last step.
constexpr EpochReport kLate{.epoch = 2,
                            .seconds = 0.5,
                            .images = 2880,
                            .loss = {},
                            .train_accuracy = {},
                            .test_accuracy = 0.65625,
                            .images_per_second = {}};

TEST(Progress, WritesNullForNumbersThatWereNotMeasured) {
  EXPECT_EQ(epoch_json(kLate),
            R"({"epoch": 2, "seconds": 0.5, "images": 2880, "images_per_second": null, )"
            R"("loss": null, "train_accuracy": null, "test_accuracy": 0.65625})");
}

TEST(Progress, WritesAnEpochAsALine) {
  EXPECT_EQ(epoch_text(kThird, 40),
            "epoch  3/40  loss 0.5000  train  87.50 %  test  93.75 %     17280 images/s");
  EXPECT_EQ(epoch_text(kLate, 2),
            "epoch 2/2  loss      -  train      - %  test  65.62 %         - images/s");
}

TEST(Progress, WritesTheOutcomeAsLines) {
  Outcome outcome{.test_accuracy = 0.975, .images_per_second = 97315, .checksum = 0xabcu};
  EXPECT_EQ(outcome_text(outcome, "on all 2 ranks"),
            "test accuracy: 97.50 %\nimages/s: 97315\n"
            "weights checksum: 0x0000000000000abc on all 2 ranks\n");
  outcome.images_per_second = {};
  EXPECT_EQ(outcome_text(outcome, ""),
            "test accuracy: 97.50 %\nimages/s: -\nweights checksum: 0x0000000000000abc\n");
}

TEST(Progress, CountsOneAndSeveral) {
  EXPECT_EQ(count_of(0, "worker"), "0 workers");
  EXPECT_EQ(count_of(1, "parameter server"), "1 parameter server");
  EXPECT_EQ(count_of(2, "epoch"), "2 epochs");
}

TEST(Progress, WritesTheOutcomeAsAnObject) {
  EXPECT_EQ(outcome_json({.test_accuracy = 0.975, .images_per_second = 97315, .checksum = 0xabcu}),
            R"({"test_accuracy": 0.975, "images_per_second": 97315, )"
            R"("weights_checksum": "0x0000000000000abc"})");
}

}  // namespace
}  // namespace muster::digits
