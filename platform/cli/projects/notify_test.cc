// The commands of `muster notify`, from whole command lines.
#include <gtest/gtest.h>

#include "cli/projects/projects.h"
#include "cli/test_call.h"

namespace muster::cli::projects {

namespace {

using job::Happening;
using Happenings = std::vector<Happening>;

TEST(NotifyAdd, ReportsEndsInTheProjectInUseByDefault) {
  const auto command = parsed_in_team_a<NotifyAddCommand>({"notify", "add", "https://h/a"});

  EXPECT_EQ(command.project, "team-a");
  EXPECT_EQ(command.request.url, "https://h/a");
  EXPECT_EQ(command.request.on,
            (Happenings{Happening::kSucceeded, Happening::kFailed, Happening::kStopped}));
  EXPECT_FALSE(command.request.with_lines);
}

TEST(NotifyAdd, TakesEventsAndAJobFilter) {
  const auto command = parsed_in_team_a<NotifyAddCommand>(
      {"notify", "add", "https://h", "--project", "lab", "--on", "failed,started", "--on", "failed",
       "--job", "train-*", "-l", "team=vision", "--label", "nightly", "--with-lines"});

  EXPECT_EQ(command.project, "lab");
  EXPECT_EQ(command.request.on, (Happenings{Happening::kFailed, Happening::kStarted}));
  EXPECT_EQ(command.request.job, "train-*");
  EXPECT_EQ(command.request.labels,
            (std::map<std::string, std::string>{{"team", "vision"}, {"nightly", ""}}));
  EXPECT_TRUE(command.request.with_lines);
  EXPECT_EQ(parsed_in_team_a<NotifyAddCommand>({"notify", "add", "-", "--on", "all"}).request.on,
            job::all_happenings());
}

TEST(NotifyAdd, NamesInvalidAndMissingValues) {
  const std::string text = refusal_in_team_a({"notify", "add", "--on", "failed,evicted"});

  EXPECT_NE(text.find("--on: 'evicted' is invalid"), std::string::npos) << text;
  EXPECT_NE(text.find("URL"), std::string::npos) << text;
}

TEST(NotifyRetry, TakesIdsOrAllButNotBoth) {
  EXPECT_EQ(parsed_in_team_a<NotifyRetryCommand>({"notify", "retry", "d1", "d2"}).ids,
            (Words{"d1", "d2"}));
  EXPECT_EQ(parsed_in_team_a<NotifyRetryCommand>({"notify", "retry", "--all"}).ids, Words{});
  EXPECT_NE(refusal_in_team_a({"notify", "retry"}), "accepted");
  EXPECT_NE(refusal_in_team_a({"notify", "retry", "d1", "--all"}), "accepted");
}

TEST(Notify, RequiresAnId) {
  EXPECT_EQ(parsed_in_team_a<NotifyRemoveCommand>({"notify", "rm", "a", "b"}).ids,
            (Words{"a", "b"}));
  EXPECT_EQ(parsed_in_team_a<NotifyTestCommand>({"notify", "test", "a"}).id, "a");
  EXPECT_EQ(parsed_in_team_a<NotifyRotateCommand>({"notify", "rotate", "a"}).id, "a");
  for (const char* command : {"remove", "test", "rotate"}) {
    EXPECT_NE(refusal_in_team_a({"notify", command}), "accepted") << command;
  }
}

}  // namespace

}  // namespace muster::cli::projects
