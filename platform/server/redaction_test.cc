#include "server/redaction.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::server {
namespace {

/// Sees project mine, and of jobs 'dist' and 'other'.
const VisibleNames kMine{
    .project = [](const std::string& name) { return name == "mine"; },
    .job = [](const std::string& name) { return name == "dist" || name == "other"; }};

std::string redacted(std::string_view sentence) {
  return redacted_sentence(sentence, kMine);
}

TEST(Redaction, HidesForWhomAJobWasEvictedAndHowThatProjectStands) {
  EXPECT_EQ(redacted("was evicted for 'spy' of project theirs, which claims its share: project "
                     "mine uses 2 GPUs (quota 1 GPU, fair share 1 GPU, priority 100); project "
                     "theirs uses 0 GPUs (quota 1 GPU, fair share 1 GPU, priority 100); waits to "
                     "start again"),
            "was evicted for a job of another project, which claims its share: project mine uses "
            "2 GPUs (quota 1 GPU, fair share 1 GPU, priority 100); waits to start again");
  EXPECT_EQ(redacted("is being ended; it was evicted for 'spy' of project theirs, which claims "
                     "its share: project org (above mine) uses 2 GPUs and 4 CPUs (quota 1 GPU and "
                     "2 CPUs, fair share 1 GPU and 2 CPUs, priority 100); project lab (above "
                     "theirs) uses 0 GPUs (quota 1 GPU, fair share 1 GPU, priority 7)"),
            "is being ended; it was evicted for a job of another project, which claims its share");
  EXPECT_EQ(redacted("is moved so that 'spy' of project theirs finds its room in one piece; it "
                     "starts again elsewhere at once"),
            "is moved so that a job of another project finds its room in one piece; it starts "
            "again elsewhere at once");
}

TEST(Redaction, LeavesWhatIsTheReadersOwn) {
  for (const char* const sentence :
       {"was preempted by 'other' of the same project, which has priority 9 where this has 1",
        "was evicted for 'other' of project mine, which claims its share: project mine uses 2 "
        "GPUs (quota 1 GPU, fair share 1 GPU, priority 100)",
        "there is room, but it is kept for 'other', which comes before it and could not start "
        "otherwise",
        "'dist' requests 2 GPUs, but project mine has a limit of 1 GPU, with nothing allocated: "
        "1 GPU too many",
        "worker-0 exited with code 1; starts again: the rule for 'CUDA error' in the log: retry 1 "
        "of 3",
        "was evicted: node n1 is being drained", "placed on n1, n2, attempt 2", ""}) {
    EXPECT_EQ(redacted(sentence), sentence);
  }
}

TEST(Redaction, HidesWhoseTurnItIsAndHowManyMakeRoom) {
  EXPECT_EQ(redacted("there is room, but it is kept for 'spy', which comes before it"),
            "there is room, but it is kept for a job of another project, which comes before it");
  EXPECT_EQ(redacted("starts as soon as 2 others have made room for it"),
            "starts as soon as others have made room for it");
  EXPECT_EQ(redacted("starts as soon as 1 other has made room for it"),
            "starts as soon as others have made room for it");
  EXPECT_EQ(redacted("the places of 3 tasks are promised to it, and 12 tasks of others are still "
                     "leaving"),
            "the places of 3 tasks are promised to it, and others are still leaving");
}

TEST(Redaction, HidesTheProjectsAboveButNotTheirBounds) {
  EXPECT_EQ(redacted("'dist' requests 2 GPUs, but project org (above mine) has a limit of 4 GPUs, "
                     "with 3 GPUs allocated: 1 GPU too many"),
            "'dist' requests 2 GPUs, but a project above mine has a limit of 4 GPUs, with 3 GPUs "
            "allocated: 1 GPU too many");
  EXPECT_EQ(redacted("starts when jobs of project org give back 1 GPU, or when its limit is raised "
                     "to 5 GPUs"),
            "starts when jobs of another project give back 1 GPU, or when its limit is raised to 5 "
            "GPUs");
  EXPECT_EQ(redacted("it asks for more than the whole limit of project 'org'."),
            "it asks for more than the whole limit of another project.");
}

TEST(Redaction, ListsOfHoldersKeepTheReadersOwn) {
  const std::vector<std::string> details{
      "held by project: theirs (3 GPUs), mine (2 GPUs) and 4 more",
      "held by job: 'spy' of theirs (3 GPUs), 'dist' of mine (1 GPU) and 'other' of mine (1 GPU)",
      "below org, theirs holds 3 GPUs, mine holds 2 GPUs and 2 others 4 GPUs",
      "ask for less, or add nodes that are large enough"};

  EXPECT_EQ(redacted_details(details, kMine),
            (std::vector<std::string>{
                "held by project: mine (2 GPUs) and others",
                "held by job: 'dist' of mine (1 GPU), 'other' of mine (1 GPU) and others",
                "below a project above, mine holds 2 GPUs and others",
                "ask for less, or add nodes that are large enough"}));
}

TEST(Redaction, LeavesOutListsOfOthersAlone) {
  EXPECT_TRUE(
      redacted_details({"held by project: theirs (3 GPUs)", "held by job: 'spy' of theirs (3 GPUs)",
                        "below org, theirs holds 3 GPUs", "below org"},
                       kMine)
          .empty());
}

TEST(Redaction, EvictionsOfOthersBecomeOneSentence) {
  const std::string own =
      "'dist' was preempted by 'other' of the same project, which has priority 9 where this has 1";
  const std::string theirs =
      "'spy' was evicted for 'other' of project mine, which claims its share: project theirs uses "
      "2 GPUs (quota 1 GPU, fair share 1 GPU, priority 100); project mine uses 0 GPUs (quota 1 "
      "GPU, fair share 1 GPU, priority 100)";
  std::string namesake = theirs;
  namesake.replace(0, 5, "'dist'");

  EXPECT_EQ(redacted_evictions({theirs, own, namesake}, kMine),
            (std::vector<std::string>{own, "jobs of other projects would be evicted for it"}));
}

TEST(Redaction, TellsNothingAboutWhichNamesThereAre) {
  EXPECT_EQ(redacted("the rule for 'kept for 'ghost'' in the log"),
            "the rule for 'kept for a job of another project' in the log");
  EXPECT_EQ(redacted("the rule for 'kept for 'spy'' in the log"),
            "the rule for 'kept for a job of another project' in the log");
}

TEST(Redaction, TakesAnyBytes) {
  for (const char* const sentence :
       {"project ", "project '", "project 'x", "'", "''", "' of project x", "kept for '",
        "claims its share: project ", "held by job: ", "held by project: ,, and  and ", "below ",
        "as soon as 99999999999999999999 others have", "\xff\xfeproject \x80"}) {
    static_cast<void>(redacted(sentence));
    static_cast<void>(redacted_details({sentence}, kMine));
    static_cast<void>(redacted_evictions({sentence}, kMine));
  }
}

}  // namespace
}  // namespace muster::server
