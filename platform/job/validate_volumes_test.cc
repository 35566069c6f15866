#include "job/validate_volumes.h"

#include <gtest/gtest.h>

#include "job/validate.h"

namespace muster::job {
namespace {

using VolumeKind = Volume::Kind;

const std::string kTreeId(64, 'a');

std::vector<Fault> volume_faults(std::vector<Volume> volumes,
                                 Sandbox sandbox = Sandbox::kBubblewrap) {
  const JobSpec spec{.name = "a",
                     .command = {"b"},
                     .volumes = std::move(volumes),
                     .folder = "/c",
                     .sandbox = sandbox};
  return validate(spec);
}

TEST(ValidateVolumes, AcceptsThoseOfAnExperiment) {
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, kTreeId, "/home/paperspace"},
                           {VolumeKind::kStorage, "storage", "/storage"},
                           {VolumeKind::kArtifacts, "", "/artifacts"},
                           {VolumeKind::kTree, kTreeId, "/data/mnist", true},
                           {VolumeKind::kTree, "", "/scratch"},
                           {VolumeKind::kHostPath, "/", "/host", true},
                           {VolumeKind::kHostPath, "/mnt/Zoë's data", "/mnt/Zoë's data"}}),
            std::vector<Fault>{});
}

TEST(ValidateVolumes, SaysWhatIsWrongWithASource) {
  const std::string no_path =
      " is not an absolute path of at most 1000 bytes without '.', '..', '//' and a '/' at its end";
  const struct {
    VolumeKind kind;
    std::string source, what;
  } cases[] = {
      {VolumeKind::kHostPath, "data", "'data'" + no_path},
      {VolumeKind::kHostPath, "", "''" + no_path},
      {VolumeKind::kHostPath, "/a/../b", "'/a/../b'" + no_path},
      {VolumeKind::kTree, "abc",
       "'abc' is not the id of files that were sent; it has 64 hex digits"},
      {VolumeKind::kTree, std::string(64, 'A'),
       "'" + std::string(60, 'A') +
           "...' is not the id of files that were sent; it has 64 hex digits"},
      {VolumeKind::kStorage, "",
       "'' is not the name of a storage; use 1 to 63 of a-z, 0-9 and '-'"},
      {VolumeKind::kStorage, "../x",
       "'../x' is not the name of a storage; use 1 to 63 of a-z, 0-9 and '-'"},
      {VolumeKind::kArtifacts, "x", "artifacts are the job's own; leave it out"},
  };
  for (const auto& [kind, source, what] : cases) {
    EXPECT_EQ(volume_faults({{kind, source, "/x"}}),
              (std::vector<Fault>{{.field = "volumes[0].source", .what = what}}));
  }
}

TEST(ValidateVolumes, SaysWhereNoVolumeCanBe) {
  const std::string no_path =
      " is not an absolute path of at most 1000 bytes without '.', '..', '//' and a '/' at its end";
  const std::string taken = " belongs to the sandbox; choose a path elsewhere";
  const struct {
    std::string target, what;
  } cases[] = {
      {"", "''" + no_path},
      {"x", "'x'" + no_path},
      {"/x/", "'/x/'" + no_path},
      {"//x", "'//x'" + no_path},
      {"/x/./y", "'/x/./y'" + no_path},
      {"/x/../../etc", "'/x/../../etc'" + no_path},
      {"/a\nb", "'/a\nb'" + no_path},
      {"/a\xC2\x9B\x31mb", "'/a\xC2\x9B\x31mb'" + no_path},
      {std::string("/a\0b", 4), "'" + std::string("/a\0b", 4) + "'" + no_path},
      {"/" + std::string(1000, 'x'), "'/" + std::string(59, 'x') + "...'" + no_path},
      {"/", "'/' is where everything else is; name a folder below it"},
      {"/proc", "'/proc'" + taken},
      {"/dev/shm", "'/dev/shm'" + taken},
      {"/sys/fs", "'/sys/fs'" + taken},
      {"/generated/secrets", "'/generated/secrets'" + taken},
  };
  for (const auto& [target, what] : cases) {
    EXPECT_EQ(volume_faults({{VolumeKind::kTree, "", target}}),
              (std::vector<Fault>{{.field = "volumes[0].target", .what = what}}));
  }
  for (const char* target : {"/process", "/devices", "/generated-data", "/tmp", "/etc/mpi"}) {
    EXPECT_EQ(volume_faults({{VolumeKind::kTree, "", target}}), std::vector<Fault>{}) << target;
  }
}

TEST(ValidateVolumes, OfTwoInOnePlaceTheSecondIsAtFault) {
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, "", "/x"}, {VolumeKind::kArtifacts, "", "/x"}}),
            (std::vector<Fault>{{.field = "volumes[1].target",
                                 .what = "'/x' is where another volume is already"}}));
}

TEST(ValidateVolumes, OneWithinAReadOnlyOneIsAtFaultInEitherOrder) {
  const Volume outer{VolumeKind::kTree, kTreeId, "/data", true};
  const Volume inner{VolumeKind::kTree, kTreeId, "/data/a/b"};
  const std::string what =
      "'/data/a/b' is within '/data', which is read-only: no folder can be made for it there";

  EXPECT_EQ(volume_faults({outer, inner}),
            (std::vector<Fault>{{.field = "volumes[1].target", .what = what}}));
  EXPECT_EQ(volume_faults({inner, outer}),
            (std::vector<Fault>{{.field = "volumes[0].target", .what = what}}));
}

TEST(ValidateVolumes, OneWithinAWritableOneIsFine) {
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, kTreeId, "/run-here"},
                           {VolumeKind::kArtifacts, "", "/run-here/out"}}),
            std::vector<Fault>{});
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, kTreeId, "/data", true},
                           {VolumeKind::kTree, "", "/database"}}),
            std::vector<Fault>{});
}

TEST(ValidateVolumes, NeedASandbox) {
  EXPECT_EQ(
      volume_faults({{VolumeKind::kTree, "", "/x"}}, Sandbox::kNone),
      (std::vector<Fault>{{.field = "volumes",
                           .what = "are made in a sandbox alone, and this job goes without one"}}));
}

TEST(ValidateVolumes, AreBoundedInNumber) {
  std::vector<Volume> volumes;
  for (int i = 0; i < 100; ++i)
    volumes.push_back({VolumeKind::kTree, "", "/x" + std::to_string(i)});
  EXPECT_EQ(volume_faults(volumes), std::vector<Fault>{});

  volumes.push_back({VolumeKind::kTree, "", "/y"});

  EXPECT_EQ(volume_faults(volumes),
            (std::vector<Fault>{{.field = "volumes", .what = "are more than 100"}}));
}

}  // namespace
}  // namespace muster::job
