#include "options.h"

#include <gtest/gtest.h>

namespace muster::digits {
namespace {

using Arguments = std::vector<std::string_view>;
using Faults = std::vector<std::string>;

TEST(Options, AreTheDefaultsWithoutArguments) {
  const auto options = parse({}, {.data = "here"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->data, "here");
  EXPECT_EQ(options->settings.epochs, Settings{}.epochs);
  EXPECT_FALSE(options->help);
}

TEST(Options, ReadValuesBehindASpaceOrAnEqualsSign) {
  const auto options =
      parse(Arguments{"--data", "there", "--epochs=3", "--batch", "8", "--learning-rate=0.5",
                      "--hidden", "32", "--seed=7", "--save", "weights"},
            {});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->data, "there");
  EXPECT_EQ(options->settings.epochs, 3);
  EXPECT_EQ(options->settings.batch, 8u);
  EXPECT_EQ(options->settings.learning_rate, 0.5);
  EXPECT_EQ(options->settings.hidden, 32);
  EXPECT_EQ(options->settings.seed, 7u);
  EXPECT_EQ(options->save, "weights");
}

TEST(Options, ReportAllFaultsAtOnce) {
  const auto options = parse(Arguments{"--epochs", "0", "--bacth", "--learning-rate=nan", "x",
                                       "--hidden=1.5", "--data=", "--seed"},
                             {});
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error(),
            (Faults{"--epochs is '0', not a whole number from 1", "there is no --bacth",
                    "--learning-rate is 'nan', not a number above 0, up to 100", "there is no x",
                    "--hidden is '1.5', not a whole number from 1 to 65536",
                    "--data is '', not a folder", "--seed needs a value"}));
}

TEST(Options, HelpNamesEveryFlag) {
  const std::string text = help({});
  for (const char* const flag :
       {"--data", "--epochs", "--batch", "--learning-rate", "--hidden", "--seed", "--save"}) {
    EXPECT_NE(text.find(flag), std::string::npos) << flag;
  }
  EXPECT_TRUE(parse(Arguments{"--help"}, {})->help);
  EXPECT_TRUE(parse(Arguments{"-h"}, {})->help);
}

}  // namespace
}  // namespace muster::digits
