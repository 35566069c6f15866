#include "sweep/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sweep/test_sweeps.h"

namespace muster::sweep {
namespace {

using What = Decision::What;
using Decisions = std::vector<Decision>;

Decisions all_decisions(Search& search) {
  Decisions decisions;
  while (const auto decision = search.next_decision()) decisions.push_back(*decision);
  return decisions;
}

Decision start_of(int trial) {
  return {.what = What::kStart, .trial = trial};
}
Decision pause_of(int trial, int rung) {
  return {.what = What::kPause, .trial = trial, .rung = rung};
}

const Trial& trial_of(const Search& search, int number) {
  return search.state().trials[static_cast<size_t>(number - 1)];
}

SweepSpec sweep_of(int trials, int concurrent, Method method = Method::kAsha) {
  SweepSpec spec = valid_sweep();
  spec.method = method;
  spec.max_trials = trials;
  spec.max_concurrent = concurrent;
  return spec;
}

TEST(Search, StartsAsManyTrialsAsMayRunAtTheSameTime) {
  const SweepSpec spec = sweep_of(16, 3);
  Search search(spec);
  EXPECT_EQ(all_decisions(search), (Decisions{start_of(1), start_of(2), start_of(3)}));
  EXPECT_EQ(all_decisions(search), Decisions{});
}

TEST(Search, PausesATrialOutsideTheTopAndStartsAnother) {
  const SweepSpec spec = sweep_of(16, 2);
  Search search(spec);
  all_decisions(search);
  search.note_rung(1, 0, 0.5);
  EXPECT_EQ(all_decisions(search), (Decisions{pause_of(1, 0), start_of(3)}));
  EXPECT_EQ(desired_of(trial_of(search, 1)), Desired::kIsSuspended);
}

TEST(Search, PromotesThePausedTrialThatEntersTheTopAsOthersArrive) {
  const SweepSpec spec = sweep_of(16, 1);
  Search search(spec);
  all_decisions(search);
  search.note_rung(1, 0, 0.9);
  all_decisions(search);
  search.note_rung(2, 0, 0.1);
  all_decisions(search);
  search.note_rung(3, 0, 0.2);
  all_decisions(search);
  search.note_rung(4, 0, 0.3);
  // Of four trials the top 1/4 continues.
  EXPECT_EQ(all_decisions(search),
            (Decisions{pause_of(4, 0), {.what = What::kPromote, .trial = 1, .rung = 1}}));
  EXPECT_EQ(desired_of(trial_of(search, 1)), Desired::kRuns);
}

TEST(Search, TheBestTrialContinuesWithoutAPause) {
  const SweepSpec spec = sweep_of(16, 4);
  Search search(spec);
  all_decisions(search);
  for (int trial = 1; trial <= 3; ++trial) search.note_rung(trial, 0, 0.1);
  all_decisions(search);
  search.note_rung(4, 0, 0.9);
  EXPECT_EQ(search.next_decision(), (Decision{.what = What::kGoOn, .trial = 4, .rung = 1}));
}

TEST(Search, MinimizesIfThatIsTheGoal) {
  SweepSpec spec = sweep_of(4, 4);
  spec.goal = Goal::kMinimize;
  Search search(spec);
  all_decisions(search);
  for (int trial = 1; trial <= 4; ++trial) {
    search.note_values(trial, trial, trial, 4);
    search.note_rung(trial, 0, trial);
  }
  EXPECT_EQ(search.next_decision(), (Decision{.what = What::kGoOn, .trial = 1, .rung = 1}));
  EXPECT_EQ(best_of(spec, search.state().trials)->number, 1);
}

TEST(Search, CompletesATrialAtTheLastRung) {
  const SweepSpec spec = sweep_of(1, 1, Method::kRandom);
  Search search(spec);
  all_decisions(search);
  search.note_values(1, 0.9, 0.8, 64);
  search.note_rung(1, 0, 0.8);
  EXPECT_EQ(all_decisions(search),
            (Decisions{{.what = What::kComplete, .trial = 1}, {.what = What::kFinish}}));
  EXPECT_EQ(search.state().end, SweepEnd::kCompleted);
  EXPECT_EQ(best_of(spec, search.state().trials)->best, 0.9);
}

TEST(Search, RanksNanAndMissingValuesBelowAllOthers) {
  const SweepSpec spec = sweep_of(8, 8);
  Search search(spec);
  all_decisions(search);
  search.note_values(1, 0.1, 0.1, 4);
  search.note_rung(1, 0, 0.1);
  for (int trial = 2; trial <= 5; ++trial) search.note_rung(trial, 0, NAN);
  search.note_rung(6, 0, std::nullopt);
  search.note_rung(7, 0, INFINITY);
  search.note_rung(8, 0, NAN);
  const Decisions decisions = all_decisions(search);
  // Two of eight may continue, but only one has a value.
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions.front(), (Decision{.what = What::kGoOn, .trial = 1, .rung = 1}));
  for (int trial = 2; trial <= 8; ++trial) {
    EXPECT_EQ(trial_of(search, trial).phase, TrialPhase::kPaused) << trial;
  }
}

TEST(Search, ContinuesWithOtherTrialsWhileATrialHangsOrIsEvicted) {
  const SweepSpec spec = sweep_of(6, 2);
  Search search(spec);
  all_decisions(search);
  // Trial 1 is evicted, or hangs: no facts about it. Trials 2 to 5 pass it.
  for (int trial = 2; trial <= 5; ++trial) {
    search.note_values(trial, 1.0 / trial, 1.0 / trial, 4);
    search.note_rung(trial, 0, 1.0 / trial);
    all_decisions(search);
  }
  EXPECT_EQ(trial_of(search, 1).phase, TrialPhase::kActive);
  EXPECT_EQ(trial_of(search, 2).rung, 1);  // promoted meanwhile
  EXPECT_EQ(search.state().end, SweepEnd::kNone);
  // The value of trial 1 arrives late, and is the best.
  search.note_values(1, 2, 2, 4);
  search.note_rung(1, 0, 2);
  search.note_rung(2, 1, 0.5);
  all_decisions(search);
  EXPECT_EQ(trial_of(search, 1).rung, 1);
  search.note_rung(1, 1, 3);
  all_decisions(search);
  search.note_rung(6, 0, 0.01);
  all_decisions(search);
  EXPECT_EQ(search.state().end, SweepEnd::kCompleted);
  EXPECT_EQ(best_of(spec, search.state().trials)->number, 1);
}

TEST(Search, CountsAFailedTrialAndStopsAfterTooManyFailures) {
  SweepSpec spec = sweep_of(16, 2);
  spec.max_failures = 1;
  Search search(spec);
  all_decisions(search);
  search.note_values(1, 0.5, 0.5, 1);
  search.note_ended(1, false);
  EXPECT_EQ(all_decisions(search), Decisions{start_of(3)});
  search.note_ended(2, false);
  EXPECT_EQ(all_decisions(search), (Decisions{{.what = What::kFinish}}));
  EXPECT_EQ(search.state().end, SweepEnd::kFailures);
  EXPECT_EQ(desired_of(trial_of(search, 3)), Desired::kHasEnded);
}

TEST(Search, StopsWhenTheFirstTrialsEndWithoutAValue) {
  const SweepSpec spec = sweep_of(16, 2);
  Search search(spec);
  all_decisions(search);
  search.note_ended(1, true);
  search.note_ended(2, true);
  all_decisions(search);
  EXPECT_EQ(search.state().end, SweepEnd::kNone);
  search.note_ended(3, true);
  EXPECT_EQ(all_decisions(search), (Decisions{{.what = What::kFinish}}));
  EXPECT_EQ(search.state().end, SweepEnd::kNoMetric);
  EXPECT_EQ(best_of(spec, search.state().trials), nullptr);
  EXPECT_EQ(trial_of(search, 1).phase, TrialPhase::kFailed);
}

TEST(Search, TakesRungsOfAFastProgramInAdvance) {
  const SweepSpec spec = sweep_of(4, 1);
  Search search(spec);
  for (int trial = 1; trial <= 4; ++trial) {
    all_decisions(search);
    const double value = trial / 10.0;
    search.note_values(trial, value, value, 64);
    for (int rung = 0; rung < 3; ++rung) search.note_rung(trial, rung, value);
  }
  all_decisions(search);
  EXPECT_EQ(search.state().end, SweepEnd::kCompleted);
  // All four have a value at every rung: the last is the best of four twice.
  EXPECT_EQ(trial_of(search, 4).rung, 2);
  EXPECT_EQ(trial_of(search, 4).phase, TrialPhase::kCompleted);
}

TEST(Search, IgnoresFactsThatItHasAndFactsAboutEndedTrials) {
  const SweepSpec spec = sweep_of(4, 2);
  Search search(spec);
  all_decisions(search);
  search.note_rung(1, 0, 0.5);
  search.note_rung(1, 0, 0.9);
  search.note_rung(1, 2, 0.9);
  search.note_rung(7, 0, 0.9);
  search.note_stopped(2);
  search.note_ended(2, true);
  search.note_rung(2, 0, 0.9);
  EXPECT_EQ(trial_of(search, 1).rungs, (std::vector<RungValue>{{0.5}}));
  EXPECT_EQ(trial_of(search, 2).phase, TrialPhase::kStopped);
  EXPECT_TRUE(trial_of(search, 2).rungs.empty());
}

TEST(Search, StartsAndPromotesNothingWhileItIsPaused) {
  const SweepSpec spec = sweep_of(4, 2);
  Search search(spec);
  all_decisions(search);
  search.set_paused(true);
  search.note_values(1, 0.5, 0.5, 4);
  search.note_rung(1, 0, 0.5);
  EXPECT_EQ(all_decisions(search), Decisions{pause_of(1, 0)});
  search.set_paused(false);
  EXPECT_EQ(all_decisions(search), Decisions{start_of(3)});
}

TEST(Search, StopsEveryTrialWithTheSweep) {
  const SweepSpec spec = sweep_of(16, 3);
  Search search(spec);
  all_decisions(search);
  search.note_rung(1, 0, 0.5);
  all_decisions(search);
  search.stop();
  for (const Trial& trial : search.state().trials) {
    EXPECT_EQ(desired_of(trial), Desired::kHasEnded);
  }
  EXPECT_EQ(all_decisions(search), Decisions{});
}

// --- property: a server that is killed between any two decisions continues in the same way

/// One sweep on a fake cluster: in each turn one active trial reports, ends or fails, by chance.
class FakeRun {
 public:
  explicit FakeRun(unsigned seed) : random_(seed), spec_(sweep_of(12, 3)) {}

  /// With the state of `search` stored and read back before each decision, if `restarts`.
  Decisions run(bool restarts) {
    Decisions decisions;
    SearchState state;
    for (int turn = 0; turn < 1000 && state.end == SweepEnd::kNone; ++turn) {
      for (;;) {
        Search search(spec_, restarts ? stored_and_read(state) : state);
        const auto decision = search.next_decision();
        state = search.state();
        if (!decision) break;
        decisions.push_back(*decision);
      }
      Search search(spec_, state);
      something_happens(search);
      state = search.state();
    }
    EXPECT_NE(state.end, SweepEnd::kNone);
    return decisions;
  }

 private:
  SearchState stored_and_read(const SearchState& state) const {
    const auto read =
        record::from_json<SearchState>(record::to_json(state, record::Form::kStore), "state");
    EXPECT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(Search(spec_, *read).state(), state);
    return *read;
  }

  void something_happens(Search& search) {
    std::vector<int> active;
    for (const Trial& trial : search.state().trials) {
      if (trial.phase == TrialPhase::kActive) active.push_back(trial.number);
    }
    if (active.empty()) return;
    const int number = active[random_() % active.size()];
    const unsigned event = random_() % 20;
    if (event == 0) return search.note_ended(number, false);
    if (event == 1) return search.note_ended(number, true);
    if (event == 2) return search.note_stopped(number);
    const int rung = static_cast<int>(trial_of(search, number).rungs.size());
    if (event == 3) return search.note_rung(number, rung, NAN);
    const double value = static_cast<double>(random_() % 1000) / 1000;
    search.note_values(number, value, value, search.budgets()[static_cast<size_t>(rung)]);
    search.note_rung(number, rung, value);
  }

  std::mt19937 random_;
  SweepSpec spec_;
};

TEST(Search, ContinuesInTheSameWayAfterARestartBetweenAnyTwoDecisions) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Decisions without = FakeRun(seed).run(false);
    EXPECT_EQ(FakeRun(seed).run(true), without) << seed;
    std::map<int, int> starts;
    for (const Decision& decision : without) {
      if (decision.what == What::kStart) ++starts[decision.trial];
    }
    for (const auto& [trial, times] : starts) EXPECT_EQ(times, 1) << trial;
  }
}

}  // namespace
}  // namespace muster::sweep
