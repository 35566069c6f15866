#include "options.h"

#include <gtest/gtest.h>

namespace muster::resnet20 {
namespace {

using Arguments = std::vector<std::string_view>;
using Faults = std::vector<std::string>;

TEST(Options, AcceptTheCommandOfTheRunAiDocument) {
  const auto options =
      parse(Arguments{"--model=resnet20", "--num_batches=1000000", "--data_name", "cifar10",
                      "--data_dir", "/cifar10", "--batch_size=64", "--variable_update=horovod"});
  ASSERT_TRUE(options) << options.error().front();
  EXPECT_EQ(options->data, "/cifar10");
  EXPECT_EQ(options->num_batches, 1'000'000u);
  EXPECT_EQ(options->batch_size, 64);
}

TEST(Options, ReadAllFlags) {
  const auto options = parse(Arguments{
      "--data", "there", "--num_warmup_batches=3", "--display_every", "5", "--optimizer=adam",
      "--learning_rate", "0.5", "--compress=bfloat16", "--sync_batch_norm", "--checkpoint", "kept",
      "--checkpoint_every=7", "--resume", "--threads=2", "--seed", "9", "--output=json"});
  ASSERT_TRUE(options) << options.error().front();
  EXPECT_EQ(options->data, "there");
  EXPECT_EQ(options->num_warmup_batches, 3u);
  EXPECT_EQ(options->display_every, 5u);
  EXPECT_EQ(options->optimizer, Optimizer::kAdam);
  EXPECT_EQ(options->learning_rate, 0.5);
  EXPECT_EQ(options->compress, Compress::kBFloat16);
  EXPECT_TRUE(options->sync_batch_norm);
  EXPECT_EQ(options->checkpoint, "kept");
  EXPECT_EQ(options->checkpoint_every, 7u);
  EXPECT_TRUE(options->resume);
  EXPECT_EQ(options->threads, 2);
  EXPECT_EQ(options->seed, 9u);
  EXPECT_EQ(options->output, Output::kJson);
}

TEST(Options, ReportAllFaultsAtOnce) {
  const auto options =
      parse(Arguments{"--model=vgg16", "--bacth_size=1", "--batch_size=0", "--learning_rate=nan",
                      "--optimizer", "lion", "--resume", "--data=", "--seed"});
  ASSERT_FALSE(options);
  EXPECT_EQ(
      options.error(),
      (Faults{"--model is 'vgg16', not resnet20, the only model", "unknown flag --bacth_size=1",
              "--batch_size is '0', not a whole number from 1 to 100000",
              "--learning_rate is 'nan', not a number above 0, up to 100",
              "--optimizer is 'lion', not sgd, momentum or adam", "--data is '', not a folder",
              "--seed requires a value",
              "--resume requires --checkpoint with the folder of the checkpoint"}));
}

TEST(Options, HelpNamesEveryFlag) {
  const std::string text = help();
  for (const char* const flag :
       {"--data", "--batch_size", "--num_batches", "--num_warmup_batches", "--display_every",
        "--optimizer", "--learning_rate", "--compress", "--sync_batch_norm", "--checkpoint",
        "--checkpoint_every", "--resume", "--threads", "--seed", "--output", "--model",
        "--data_dir", "--data_name", "--variable_update"}) {
    EXPECT_NE(text.find(flag), std::string::npos) << flag;
  }
  EXPECT_TRUE(parse(Arguments{"-h"})->help);
}

}  // namespace
}  // namespace muster::resnet20
