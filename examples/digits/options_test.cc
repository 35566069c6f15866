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

TEST(Options, ReadValuesAfterASpaceOrAnEqualsSign) {
  const auto options =
      parse(Arguments{"--data", "there", "--epochs=3", "--batch", "8", "--learning-rate=0.5",
                      "--hidden", "32", "--seed=7", "--save", "weights", "--output", "json"},
            {});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->data, "there");
  EXPECT_EQ(options->settings.epochs, 3);
  EXPECT_EQ(options->settings.batch, 8u);
  EXPECT_EQ(options->settings.learning_rate, 0.5);
  EXPECT_EQ(options->settings.hidden, 32);
  EXPECT_EQ(options->settings.seed, 7u);
  EXPECT_EQ(options->save, "weights");
  EXPECT_EQ(options->output, Output::kJson);
}

TEST(Options, SelectParameterServersAndTheirOptimizer) {
  const auto options =
      parse(Arguments{"--staleness", "4", "--strategy=parameter-server", "--start-with", "1",
                      "--optimizer", "nesterov", "--silence=90"},
            {});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->strategy, Strategy::kParameterServer);
  EXPECT_EQ(options->servers.staleness, 4u);
  EXPECT_EQ(options->servers.start_with, 1);
  EXPECT_EQ(options->servers.silence, std::chrono::seconds(90));
  EXPECT_EQ(options->servers.optimizer,
            parameter_server::Optimizer(parameter_server::Sgd{
                .learning_rate = Settings{}.learning_rate, .momentum = 0.9, .nesterov = true}));

  const auto unbounded =
      parse(Arguments{"--strategy", "parameter-server", "--staleness", "none"}, {});
  ASSERT_TRUE(unbounded);
  EXPECT_FALSE(unbounded->servers.staleness);
}

TEST(Options, HaveTheOptimizersOwnLearningRateUnlessOneIsGiven) {
  const auto adam = [](std::string_view more) {
    const auto options =
        parse(Arguments{"--strategy=parameter-server", "--optimizer=adam", more}, {});
    return std::get<parameter_server::Adam>(options->servers.optimizer).learning_rate;
  };
  EXPECT_EQ(adam("--seed=1"), parameter_server::Adam{}.learning_rate);
  EXPECT_EQ(adam("--learning-rate=0.5"), 0.5);
}

TEST(Options, OfParameterServersAreRejectedInARing) {
  const auto options =
      parse(Arguments{"--staleness=1", "--optimizer", "lion", "--start-with=0", "--silence=0"}, {});
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error(), (Faults{"--optimizer is 'lion', not sgd, momentum, nesterov or adam",
                                     "--start-with is '0', not a whole number from 1 to 1000000",
                                     "--silence is '0', not a whole number from 1 to 86400",
                                     "--staleness requires --strategy parameter-server",
                                     "--optimizer requires --strategy parameter-server",
                                     "--start-with requires --strategy parameter-server",
                                     "--silence requires --strategy parameter-server"}));
}

TEST(Options, ReportAllFaultsAtOnce) {
  const auto options = parse(Arguments{"--epochs", "0", "--bacth", "--learning-rate=nan", "x",
                                       "--hidden=1.5", "--data=", "--output=yaml", "--seed"},
                             {});
  ASSERT_FALSE(options);
  EXPECT_EQ(
      options.error(),
      (Faults{"--epochs is '0', not a whole number from 1", "unknown flag --bacth",
              "--learning-rate is 'nan', not a number above 0, up to 100", "unknown flag x",
              "--hidden is '1.5', not a whole number from 1 to 65536", "--data is '', not a folder",
              "--output is 'yaml', not text or json", "--seed requires a value"}));
}

TEST(Options, HelpNamesEveryFlag) {
  const std::string text = help({});
  for (const char* const flag :
       {"--data", "--epochs", "--batch", "--learning-rate", "--hidden", "--seed", "--save",
        "--strategy", "--optimizer", "--staleness", "--start-with", "--silence", "--output"}) {
    EXPECT_NE(text.find(flag), std::string::npos) << flag;
  }
  EXPECT_TRUE(parse(Arguments{"--help"}, {})->help);
  EXPECT_TRUE(parse(Arguments{"-h"}, {})->help);
}

}  // namespace
}  // namespace muster::digits
