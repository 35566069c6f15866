// What a job finds and is called by: flags through whole command lines, and the keys of a file.
#include "cli/spec/content_flags.h"

#include <gtest/gtest.h>

#include "cli/jobs/jobs.h"
#include "cli/spec/spec_file.h"
#include "cli/test_call.h"
#include "job/spec_table.h"

namespace muster::cli::spec {

namespace {

using job::Volume;
using Volumes = std::vector<Volume>;

jobs::SubmitCommand submitted(const Words& words) {
  return parsed<jobs::SubmitCommand>(with_program(words));
}

TEST(ContentFlags, ArtifactsAloneMeansTheirUsualFolder) {
  const auto volumes = [](const std::string& flag) {
    return submitted({"submit", "single", "a", flag}).spec.volumes;
  };

  EXPECT_EQ(volumes("--artifacts"),
            (std::vector<Volume>{{.kind = Volume::Kind::kArtifacts, .target = "/artifacts"}}));
  EXPECT_EQ(volumes("--artifacts=/out"),
            (std::vector<Volume>{{.kind = Volume::Kind::kArtifacts, .target = "/out"}}));
}

TEST(ContentFlags, VolumesArePathsStorageOrArtifacts) {
  const jobs::SubmitCommand command =
      submitted({"submit", "single", "a", "-v", "/data:/cifar:ro", "--volume", "in:/in", "-v",
                 "storage/models:/models", "-v", "artifacts:/out:rw"});

  EXPECT_EQ(command.spec.volumes,
            (Volumes{
                {.source = "/data", .target = "/cifar", .read_only = true},
                {.source = "/home/ada/in", .target = "/in"},
                {.kind = Volume::Kind::kStorage, .source = "models", .target = "/models"},
                {.kind = Volume::Kind::kArtifacts, .target = "/out"},
            }));
}

TEST(ContentFlags, WhatIsNoVolumeIsNone) {
  for (const char* text : {"", "/data", "/data:", ":/data", "/a:/b:rx", "/a:/b:ro:x"}) {
    EXPECT_FALSE(job::parse_volume(text)) << text;
  }
  EXPECT_EQ(refusal({"submit", "single", "a", "-v", "/data", "--", "ls"})
                    .find("'/data' is not FROM:TO, FROM:TO:ro or FROM:TO:rw") == std::string::npos,
            false);
}

TEST(ContentFlags, ALabelWithoutAValueIsATag) {
  const jobs::SubmitCommand command =
      submitted({"submit", "single", "a", "-l", "nightly", "--label", "note=a=b", "--hold",
                 "--image", "train:3"});

  const std::map<std::string, std::string> labels{{"nightly", ""}, {"note", "a=b"}};
  EXPECT_EQ(command.spec.labels, labels);
  EXPECT_TRUE(command.spec.held);
  EXPECT_EQ(command.spec.image, "train:3");
}

TEST(ContentFlags, AWorkspaceIsFetchedFirstAndWorkedIn) {
  const jobs::SubmitCommand command =
      submitted({"submit", "mpi", "a", "-n", "2", "--workspace", "https://example.org/a.git",
                 "--workspace-ref", "v3", "--ignore", "*.bin"});

  ASSERT_TRUE(command.workspace);
  EXPECT_EQ(command.workspace->source.where, "https://example.org/a.git");
  EXPECT_EQ(command.workspace->source.ref, "v3");
  EXPECT_EQ(command.workspace->ignore, Words{"*.bin"});
  job::JobSpec spec = command.spec;
  work_in("0123", spec);
  EXPECT_EQ(spec.folder, "/workspace");
  EXPECT_EQ(spec.volumes,
            (Volumes{{.kind = Volume::Kind::kTree, .source = "0123", .target = "/workspace"}}));
}

TEST(ContentFlags, WhatBelongsToAWorkspaceNeedsOneAndNoOtherFolder) {
  const std::string alone = refusal({"submit", "single", "a", "--ignore", "b", "--", "ls"});
  EXPECT_NE(alone.find("--ignore belongs to --workspace"), std::string::npos) << alone;
  const std::string both =
      refusal({"submit", "single", "a", "--workspace", ".", "--folder", "/tmp", "--", "ls"});
  EXPECT_NE(both.find("--folder does not go with --workspace"), std::string::npos) << both;
}

TEST(ContentFlags, AClusterOfTensorFlowHasAChiefThatWorksAsItsWorkersDo) {
  const jobs::SubmitCommand command =
      submitted({"submit", "grpc", "a", "-n", "1", "--gpus", "2", "--parameter-servers", "3",
                 "--parameter-server-command", "python3 ps.py"});

  EXPECT_EQ(command.spec.kind, job::Kind::kGrpc);
  EXPECT_EQ(command.spec.leader.resources.gpus, 2);
  EXPECT_EQ(command.spec.parameter_servers, 3);
  EXPECT_EQ(command.spec.parameter_server.command, (Words{"sh", "-c", "python3 ps.py"}));
  EXPECT_EQ(command.spec.parameter_server.resources.gpus, 0);
}

TEST(ContentFlags, AnEvaluatorRunsTheCommandOrItsOwn) {
  const job::JobSpec same = submitted({"submit", "grpc", "a", "-n", "0", "--evaluators", "1"}).spec;
  const job::JobSpec own =
      submitted({"submit", "grpc", "a", "-n", "0", "--evaluator-command", "python3 ev.py"}).spec;

  EXPECT_EQ(same.evaluators, 1);
  EXPECT_EQ(same.evaluator, job::RoleSpec());
  EXPECT_EQ(own.evaluators, 1);
  EXPECT_EQ(own.evaluator.command, (Words{"sh", "-c", "python3 ev.py"}));
  const auto refused = [](const Words& words) { return refusal(with_program(words)); };
  EXPECT_NE(refused({"submit", "grpc", "a", "-n", "1", "--evaluators", "2"})
                .find("--evaluators 2 is out of range; give 0 to 1"),
            std::string::npos);
  EXPECT_NE(refused({"submit", "torch", "a", "-n", "1", "--evaluators", "1"})
                .find("unknown flag '--evaluators'"),
            std::string::npos);
}

// --- the keys of a file

Result<job::JobSpec> parse_roles(const std::string& text) {
  job::JobSpec defaults;
  defaults.folder = "/home/ada";
  return parse_spec_file("name: one\n" + text, "job.yaml", defaults);
}

TEST(RolesOfAJobFile, AreMapsOfWhatTheyRunAndNeed) {
  const auto spec = parse_roles(
      "kind: grpc\nworkers: 1\nimage: train:3\narguments: [--epochs, \"3\"]\n"
      "leader: {resources: {gpus: 1}, environment: {ROLE: lead}}\n"
      "parameter_servers: 2\n"
      "parameter_server: {image: ps:1, command: python3 ps.py, resources: {cpus: 2}}\n"
      "evaluators: 1\nevaluator: {command: [python3, ev.py], environment: {ROLE: ev}}\n"
      "labels: {team: vision, nightly: \"\"}\nannotations: {ticket: 17}\nheld: true\n");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->image, "train:3");
  EXPECT_TRUE(spec->command.empty());
  EXPECT_EQ(spec->arguments, (Words{"--epochs", "3"}));
  EXPECT_EQ(spec->leader.resources.gpus, 1);
  EXPECT_EQ(spec->leader.environment.at("ROLE"), "lead");
  EXPECT_EQ(spec->parameter_servers, 2);
  EXPECT_EQ(spec->parameter_server.image, "ps:1");
  EXPECT_EQ(spec->parameter_server.command, (Words{"sh", "-c", "python3 ps.py"}));
  EXPECT_EQ(spec->parameter_server.resources.cpu_milli, 2000);
  EXPECT_EQ(spec->evaluators, 1);
  EXPECT_EQ(spec->evaluator.command, (Words{"python3", "ev.py"}));
  EXPECT_EQ(spec->evaluator.environment.at("ROLE"), "ev");
  EXPECT_EQ(spec->labels.at("team"), "vision");
  EXPECT_EQ(spec->annotations.at("ticket"), "17");
  EXPECT_TRUE(spec->held);
}

TEST(RolesOfAJobFile, VolumesAreWordsOrMaps) {
  const auto spec = parse_roles(
      "command: [ls]\nvolumes:\n  - data:/data:ro\n"
      "  - {kind: storage, source: models, target: /models}\n"
      "  - {source: in, target: /in, read_only: true}\n");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->volumes,
            (Volumes{{.source = "/home/ada/data", .target = "/data", .read_only = true},
                     {.kind = Volume::Kind::kStorage, .source = "models", .target = "/models"},
                     {.source = "/home/ada/in", .target = "/in", .read_only = true}}));
}

TEST(RolesOfAJobFile, EachFaultIsToldOnceWithItsLine) {
  const auto spec = parse_roles(
      "command: [ls]\n"
      "leader: [a]\n"
      "parameter_servers: many\n"
      "volumes:\n"
      "  - nowhere\n"
      "  - {kind: storige, target: /a}\n"
      "labels: {team: vision, team: sound}\n"
      "held: perhaps\n");

  ASSERT_FALSE(spec);
  std::vector<std::string> places;
  for (const base::Fault& fault : spec.error().faults) {
    places.push_back(std::to_string(fault.line) + " " + fault.field);
  }
  EXPECT_EQ(places, (Words{"3 leader", "4 parameter_servers", "6 volumes[0]", "7 volumes[1].kind",
                           "8 labels.team", "9 held"}));
}

}  // namespace

}  // namespace muster::cli::spec
