#include "sweep/spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/units.h"
#include "sweep/test_sweeps.h"

namespace muster::sweep {
namespace {

std::vector<std::string> fields_of(const std::vector<base::Fault>& faults) {
  std::vector<std::string> fields;
  for (const base::Fault& fault : faults) fields.push_back(fault.field);
  return fields;
}

TEST(Parameter, HasShortForms) {
  const std::vector<std::pair<std::string, std::optional<Parameter>>> cases = {
      {"16,32, 64", Parameter{.values = {"16", "32", "64"}}},
      {"adam", Parameter{.values = {"adam"}}},
      {"0..0.5", Parameter{.low = 0, .high = 0.5}},
      {"-1..1/0.5", Parameter{.low = -1, .high = 1, .step = 0.5}},
      {"int:1..8", Parameter{.low = 1, .high = 8, .integer = true}},
      {"log:1e-4..1e-1", Parameter{.low = 1e-4, .high = 1e-1, .log = true}},
      {"log:int:16..512", Parameter{.low = 16, .high = 512, .log = true, .integer = true}},
      {"int:log:16..512", Parameter{.low = 16, .high = 512, .log = true, .integer = true}},
      {"", std::nullopt},
      {"a,,b", std::nullopt},
      {"log:16", std::nullopt},
      {"int:1..8/", std::nullopt},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(parse_parameter(text), expected) << text;
}

TEST(Grid, RunsEveryCombinationWithTheLastParameterFastest) {
  SweepSpec spec = valid_sweep();
  spec.method = Method::kGrid;
  spec.max_trials = 0;
  spec.parameters = {{"a", {.values = {"x", "y"}}},
                     {"b", {.low = 0, .high = 0.3, .step = 0.1}},
                     {"c", {.low = 1, .high = 3, .integer = true}}};
  ASSERT_EQ(trial_count(spec), 24);

  std::set<Values> all;
  for (int number = 1; number <= 24; ++number) all.insert(values_of(spec, number));

  EXPECT_EQ(all.size(), 24U);
  EXPECT_EQ(values_of(spec, 1), (Values{{"a", "x"}, {"b", "0"}, {"c", "1"}}));
  EXPECT_EQ(values_of(spec, 2), (Values{{"a", "x"}, {"b", "0"}, {"c", "2"}}));
  EXPECT_EQ(values_of(spec, 24), (Values{{"a", "y"}, {"b", "0.3"}, {"c", "3"}}));
}

TEST(Grid, HasTheValuesOfEachStepInAllTheirDigits) {
  using Texts = std::vector<std::string>;
  const std::vector<std::pair<Parameter, Texts>> cases = {
      {{.low = 20261129, .high = 20261131, .step = 1}, {"20261129", "20261130", "20261131"}},
      {{.low = 1e6, .high = 3e6, .step = 1e6}, {"1000000", "2000000", "3000000"}},
      {{.low = -0.2, .high = 0.2, .step = 0.1}, {"-0.2", "-0.1", "0", "0.1", "0.2"}},
      {{.low = 1000.1, .high = 1000.3, .step = 0.1}, {"1000.1", "1000.2", "1000.3"}},
      {{.low = 1e-5, .high = 3e-5, .step = 1e-5}, {"1e-05", "2e-05", "3e-05"}},
      {{.low = 0, .high = 0, .step = 1}, {"0"}},
  };
  for (const auto& [range, expected] : cases) {
    SweepSpec spec = valid_sweep();
    spec.method = Method::kGrid;
    spec.max_trials = 0;
    spec.parameters = {{"x", range}};
    ASSERT_EQ(fields_of(validate(spec)), std::vector<std::string>{}) << expected.front();
    Texts found;
    for (int number = 1; number <= trial_count(spec); ++number) {
      found.push_back(values_of(spec, number).at("x"));
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(RandomSearch, DrawsDifferentValuesOfARangeThatIsNarrowBesideItsEnds) {
  SweepSpec spec = valid_sweep();
  spec.parameters = {{"x", {.low = 20261101, .high = 20261130}}};
  std::set<std::string> drawn;
  for (int number = 1; number <= 10; ++number) {
    const std::string value = values_of(spec, number).at("x");
    EXPECT_GE(*base::number_of<double>(value), 20261101) << value;
    EXPECT_LE(*base::number_of<double>(value), 20261130) << value;
    drawn.insert(value);
  }
  EXPECT_EQ(drawn.size(), 10U);
}

TEST(RandomSearch, DrawsTheSameValuesInAnyOrderAndOthersWithAnotherSeed) {
  SweepSpec spec = valid_sweep();
  const Values seventh = values_of(spec, 7);
  EXPECT_NE(values_of(spec, 8), seventh);
  EXPECT_EQ(values_of(spec, 7), seventh);
  spec.seed = 1;
  EXPECT_NE(values_of(spec, 7), seventh);
}

TEST(RandomSearch, KeepsTheValuesOfOtherParametersWhenOneIsAdded) {
  SweepSpec spec = valid_sweep();
  const std::string before = values_of(spec, 3).at("lr");
  spec.parameters["momentum"] = {.low = 0, .high = 1};
  EXPECT_EQ(values_of(spec, 3).at("lr"), before);
}

TEST(RandomSearch, CoversRangesThatAreWiderThanTheLargestNumber) {
  SweepSpec spec = valid_sweep();
  spec.parameters = {{"log", {.low = 1e-160, .high = 1e160, .log = true}},
                     {"real", {.low = -1e308, .high = 1e308}}};
  constexpr int kDraws = 200;
  int small = 0;
  int negative = 0;
  for (int number = 1; number <= kDraws; ++number) {
    const Values values = values_of(spec, number);
    small += *base::number_of<double>(values.at("log")) < 1 ? 1 : 0;
    negative += *base::number_of<double>(values.at("real")) < 0 ? 1 : 0;
  }
  EXPECT_NEAR(small, kDraws / 2, 40);
  EXPECT_NEAR(negative, kDraws / 2, 40);
}

TEST(RandomSearch, CoversEachKindOfRangeEvenly) {
  SweepSpec spec = valid_sweep();
  spec.parameters = {{"log", {.low = 1e-4, .high = 1, .log = true}},
                     {"whole", {.low = 1, .high = 4, .integer = true}},
                     {"list", {.values = {"a", "b"}}},
                     {"real", {.low = -1, .high = 1}}};
  constexpr int kDraws = 2000;
  int small = 0;
  int negative = 0;
  std::map<std::string, int> whole;
  std::map<std::string, int> list;
  for (int number = 1; number <= kDraws; ++number) {
    const Values values = values_of(spec, number);
    const double log = *base::number_of<double>(values.at("log"));
    EXPECT_TRUE(log >= 1e-4 && log <= 1) << log;
    small += log < 1e-2 ? 1 : 0;
    negative += *base::number_of<double>(values.at("real")) < 0 ? 1 : 0;
    ++whole[values.at("whole")];
    ++list[values.at("list")];
  }
  EXPECT_NEAR(small, kDraws / 2, 120);
  EXPECT_NEAR(negative, kDraws / 2, 120);
  EXPECT_EQ(whole.size(), 4U);
  for (const auto& [value, times] : whole) EXPECT_NEAR(times, kDraws / 4, 120) << value;
  for (const auto& [value, times] : list) EXPECT_NEAR(times, kDraws / 2, 120) << value;
}

TEST(Budgets, AreDividedFromTheLongestTrialDown) {
  using Budgets = std::vector<int64_t>;
  SweepSpec spec = valid_sweep();
  spec.max_steps = 256;
  spec.max_rungs = 5;
  EXPECT_EQ(budgets_of(spec), (Budgets{1, 4, 16, 64, 256}));
  spec.max_rungs = 3;
  EXPECT_EQ(budgets_of(spec), (Budgets{16, 64, 256}));
  spec.max_steps = 40;
  spec.max_rungs = 5;
  EXPECT_EQ(budgets_of(spec), (Budgets{2, 10, 40}));
  spec.max_steps = 0;
  spec.max_time = std::chrono::seconds(20);
  EXPECT_EQ(budgets_of(spec), (Budgets{1250, 5000, 20000}));
  spec.method = Method::kRandom;
  EXPECT_EQ(budgets_of(spec), (Budgets{20000}));
  spec.max_time.reset();
  EXPECT_TRUE(budgets_of(spec).empty());
}

TEST(TrialJob, GetsItsValuesAsWordsVariablesAndJson) {
  SweepSpec spec = valid_sweep();
  spec.method = Method::kGrid;
  spec.parameters = {{"batch_size", {.values = {"32"}}}, {"opt", {.values = {"adam"}}}};
  spec.job.command = {"train", "--batch={batch_size}", "{opt}", "{other} {opt"};
  spec.job.arguments = {"{opt}-{batch_size}"};
  spec.job.environment = {{"OPT", "of the template"}};

  const job::JobSpec job = trial_job(spec, 1, 1);

  EXPECT_EQ(job.name, "lr-1");
  EXPECT_EQ(job.command, (std::vector<std::string>{"train", "--batch=32", "adam", "{other} {opt"}));
  EXPECT_EQ(job.arguments, std::vector<std::string>{"adam-32"});
  const std::map<std::string, std::string> expected = {
      {"BATCH_SIZE", "32"},
      {"OPT", "of the template"},
      {"MUSTER_PARAM_BATCH_SIZE", "32"},
      {"MUSTER_PARAM_OPT", "adam"},
      {"MUSTER_PARAMETERS", R"({"batch_size":32,"opt":"adam"})"},
      {"MUSTER_SWEEP", "lr"},
      {"MUSTER_SWEEP_TRIAL", "1"},
      {"MUSTER_SWEEP_RUNG", "0"},
      {"MUSTER_SWEEP_RUNGS", "1"},
      {"MUSTER_SWEEP_STEPS", "64"},
      {"MUSTER_SWEEP_MAX_STEPS", "64"}};
  auto found = trial_job(spec, 1, 0).environment;
  EXPECT_EQ(found, expected);
}

TEST(TrialJob, MayGoOnBelowTheLastRung) {
  const SweepSpec spec = valid_sweep();
  EXPECT_TRUE(may_go_on(trial_job(spec, 1, 0)));
  EXPECT_TRUE(may_go_on(trial_job(spec, 1, 1)));
  EXPECT_FALSE(may_go_on(trial_job(spec, 1, 2)));
  EXPECT_EQ(trial_job(spec, 1, 1).environment.at("MUSTER_SWEEP_STEPS"), "16");
  EXPECT_FALSE(may_go_on(job::JobSpec{}));
}

TEST(Validate, AcceptsAValidSweep) {
  EXPECT_EQ(fields_of(validate(valid_sweep())), std::vector<std::string>{});
}

TEST(Validate, ReportsEveryFaultWithItsField) {
  using Change = void (*)(SweepSpec&);
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](SweepSpec& s) { s.parameters.clear(); }, "parameters"},
      {[](SweepSpec& s) { s.parameters["a-b"] = {.values = {"1"}}; }, "parameters.a-b"},
      {[](SweepSpec& s) { s.parameters["LR"] = {.values = {"1"}}; }, "parameters.lr"},
      {[](SweepSpec& s) { s.parameters["muster_x"] = {.values = {"1"}}; }, "parameters.muster_x"},
      {[](SweepSpec& s) { s.parameters["x"] = {}; }, "parameters.x"},
      {[](SweepSpec& s) { s.parameters["x"] = {.low = 2, .high = 1}; }, "parameters.x.high"},
      {[](SweepSpec& s) { s.parameters["x"] = {.low = 0, .high = 1, .log = true}; },
       "parameters.x.low"},
      {[](SweepSpec& s) { s.parameters["x"] = {.low = 0.5, .high = 1, .integer = true}; },
       "parameters.x"},
      {[](SweepSpec& s) { s.parameters["x"] = {.low = 0, .high = 1, .step = 0}; },
       "parameters.x.step"},
      {[](SweepSpec& s) { s.parameters["x"] = {.low = 1e15, .high = 1.1e15, .step = 1}; },
       "parameters.x.step"},
      {[](SweepSpec& s) { s.parameters["x"] = {.low = 0, .high = 1, .step = 1e-20}; },
       "parameters.x.step"},
      {[](SweepSpec& s) { s.parameters["x"] = {.low = NAN, .high = 1}; }, "parameters.x"},
      {[](SweepSpec& s) { s.parameters["x"] = {.values = {"1"}, .low = 0}; }, "parameters.x"},
      {[](SweepSpec& s) { s.metric.clear(); }, "metric"},
      {[](SweepSpec& s) { s.max_trials = 0; }, "max_trials"},
      {[](SweepSpec& s) { s.max_trials = -1; }, "max_trials"},
      {[](SweepSpec& s) { s.max_concurrent = 0; }, "max_concurrent"},
      {[](SweepSpec& s) { s.divisor = 1; }, "divisor"},
      {[](SweepSpec& s) { s.max_steps = 0; }, "max_steps"},
      {[](SweepSpec& s) { s.max_time = std::chrono::hours(1); }, "max_time"},
      {[](SweepSpec& s) { s.method = Method::kGrid; }, "parameters"},
      {[](SweepSpec& s) { s.job.name = std::string(43, 'a'); }, "job.name"},
      {[](SweepSpec& s) { s.job.array.indexes = "0-3"; }, "job.array"},
      {[](SweepSpec& s) {
         s.method = Method::kAsha;
         s.job.scheduling.singleton = "lr";
       },
       "job.scheduling.singleton"},
      {[](SweepSpec& s) { s.job.folder = "here"; }, "job.folder"},
  };
  for (const auto& [change, field] : cases) {
    SweepSpec spec = valid_sweep();
    change(spec);
    const std::vector<std::string> fields = fields_of(validate(spec));
    EXPECT_TRUE(std::find(fields.begin(), fields.end(), field) != fields.end()) << field;
  }
}

TEST(Validate, ReportsTheFaultsOfTheTemplateBesideThoseOfTheSweep) {
  SweepSpec spec = valid_sweep();
  spec.metric.clear();
  spec.job.name = "Bad Name";
  spec.job.folder = "here";

  EXPECT_EQ(fields_of(validate(spec)),
            (std::vector<std::string>{"metric", "job.name", "job.folder"}));
}

TEST(SweepTable, ReadsBackWhatItWrites) {
  const SweepSpec spec = valid_sweep();
  for (const record::Form form : {record::Form::kWire, record::Form::kStore}) {
    const auto read = record::from_json<SweepSpec>(record::to_json(spec, form), "sweep");
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, spec);
  }
}

}  // namespace
}  // namespace muster::sweep
