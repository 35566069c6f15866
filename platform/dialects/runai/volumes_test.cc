#include "dialects/runai/volumes.h"

#include "dialects/runai/submission_fixture.h"

namespace muster::dialects::runai {

namespace {

using job::Volume;

std::vector<Volume> volumes_of(const Words& flags) {
  return asked_by(submit_with(flags)).spec.volumes;
}

Volume host(std::string source, std::string target, bool read_only = false) {
  return {.kind = Volume::Kind::kHostPath,
          .source = std::move(source),
          .target = std::move(target),
          .read_only = read_only};
}

Volume storage(std::string source, std::string target, bool read_only = false) {
  return {.kind = Volume::Kind::kStorage,
          .source = std::move(source),
          .target = std::move(target),
          .read_only = read_only};
}

TEST(RunaiVolumes, AHostFolderIsMountedAtItsPath) {
  const std::vector<std::pair<std::string, Volume>> table{
      {"/data:/mnt", host("/data", "/mnt")},
      {"/data:/mnt:ro", host("/data", "/mnt", true)},
      {"/data:/mnt:rw", host("/data", "/mnt")},
      {"/data/:/mnt//x/", host("/data", "/mnt/x")},
  };
  for (const auto& [text, volume] : table) {
    EXPECT_EQ(volumes_of({"-v", text}), std::vector{volume}) << text;
    EXPECT_EQ(volumes_of({"--volumes", text}), std::vector{volume}) << text;
  }
}

TEST(RunaiVolumes, AClaimIsAFolderOfTheProject) {
  EXPECT_EQ(volumes_of({"--pvc", "data:/mnt"}), std::vector{storage("data", "/mnt")});
  EXPECT_EQ(volumes_of({"--pvc", "data:/mnt:ro"}), std::vector{storage("data", "/mnt", true)});
  EXPECT_EQ(volumes_of({"--pvc-exists", "claimname=data,path=/mnt"}),
            std::vector{storage("data", "/mnt")});
  EXPECT_EQ(volumes_of({"--pvc-new", "claimname=data,size=1Gi,path=/mnt,ro"}),
            std::vector{storage("data", "/mnt", true)});
}

TEST(RunaiVolumes, TheNamesOfOldFlagsMeanTheSame) {
  EXPECT_EQ(volumes_of({"--existing-pvc", "claimname=data,path=/mnt", "--existing-pvc",
                        "claimname=home,path=/home/me"}),
            (std::vector{storage("data", "/mnt"), storage("home", "/home/me")}));
  EXPECT_EQ(volumes_of({"--new-pvc", "claimname=data,size=1Gi,path=/mnt"}),
            std::vector{storage("data", "/mnt")});
  EXPECT_EQ(fault_of(submit_with({"--existing-pvc", "claimname=data"})),
            "--existing-pvc must contain path=");
  EXPECT_EQ(fault_of(submit_with({"--new-pvc", "path=/mnt"})), "--new-pvc must contain size=");
}

TEST(RunaiVolumes, ANoteExplainsThatAnExistingClaimIsAFolder) {
  const std::string why =
      ": 'data' is the project's folder of this name, created if it is missing; on Kubernetes, set "
      "MUSTER_ENGINE=kubernetes to mount the claim";
  EXPECT_EQ(asked_by(submit_with({"--pvc-exists", "claimname=data,path=/mnt"})).notes,
            Words{"--pvc-exists" + why});
  EXPECT_EQ(asked_by(submit_with({"--pvc", "data:/mnt"})).notes, Words{"--pvc" + why});
}

TEST(RunaiVolumes, OnKubernetesAnExistingClaimIsMounted) {
  const Submission asked = asked_by(
      submit_with({"--pvc", "data:/mnt:ro", "--pvc-exists", "claimname=scratch,path=/scratch/",
                   "--existing-pvc", "claimname=home,path=/home/me", "--pvc", "ssd:5Gi:/new"}),
      true);
  EXPECT_EQ(asked.spec.kubernetes.claims,
            (Words{"data:/mnt:ro", "scratch:/scratch", "home:/home/me"}));
  EXPECT_EQ(asked.spec.volumes, std::vector{storage("", "/new")});
  EXPECT_EQ(asked.notes,
            Words{"--pvc: the volume is a folder; its size and class are not enforced"});
  EXPECT_EQ(
      read_words(submit_with({"--pvc", "data:/mnt", "--pvc-exists", "claimname=Data,path=/other"}),
                 true)
          .faults,
      Words{"--pvc-exists 'Data:/other' is not CLAIM[/FOLDER]:PATH[:ro], as in "
            "datasets/imagenet:/data:ro, nor secret:NAME[/KEY]:PATH or "
            "configmap:NAME[/KEY]:PATH"});
}

TEST(RunaiVolumes, ANewClaimIsNamedAfterTheJob) {
  const Submission asked = asked_by(
      submit_with({"--pvc", "ssd:5Gi:/a", "--pvc", ":1G:/b:ro", "--pvc-new", "size=1G,path=/c"}));
  EXPECT_EQ(named_after(asked.spec, "job-7").volumes,
            (std::vector{storage("job-7-volume-0", "/a"), storage("job-7-volume-1", "/b", true),
                         storage("job-7-volume-2", "/c")}));
  EXPECT_EQ(asked.notes,
            Words{"--pvc: the volume is a folder; its size and class are not enforced"});
}

TEST(RunaiVolumes, AnEphemeralVolumeIsAFolderOfTheJob) {
  EXPECT_EQ(volumes_of({"--pvc-new", "size=1G,path=/tmp/x,ephemeral"}),
            (std::vector<Volume>{{.kind = Volume::Kind::kTree, .source = "", .target = "/tmp/x"}}));
}

TEST(RunaiVolumes, AHomeFolderIsCreatedOnRequest) {
  const job::JobSpec spec = asked_by(submit_with({"--create-home-dir"})).spec;
  EXPECT_EQ(spec.environment.at("HOME"), "/home/runai-home");
  EXPECT_EQ(spec.volumes,
            (std::vector<Volume>{
                {.kind = Volume::Kind::kTree, .source = "", .target = "/home/runai-home"}}));
}

TEST(RunaiVolumes, FaultsAreReportedUnderTheirFlags) {
  const std::string mount = "mount it on the nodes, and use --volume HOST:PATH";
  const std::vector<std::pair<Words, std::string>> table{
      {{"-v", "data:/mnt"}, "--volume 'data' is not an absolute path"},
      {{"-v", "/data:mnt"}, "--volume 'mnt' is not an absolute path"},
      {{"-v", "/data:/mnt:readonly"}, "--volume 'readonly' is neither ro nor rw"},
      {{"-v", "/data:/mnt:ro:nas"},
       "--volume '/data:/mnt:ro:nas': volumes of an NFS server are not supported; " + mount},
      {{"-v", "/data:/proc/x"},
       "--volume '/proc/x' is reserved for the sandbox; choose another path"},
      {{"-v", "/data:/mnt", "--pvc", "data:/mnt"},
       "--pvc '/mnt' is already the target of another volume"},
      {{"--git-sync", "source=x,target=code"},
       "--git-sync 'code' is not an absolute path of at most "
       "1000 bytes without '.', '..', '//' and a '/' at its "
       "end"},
      {{"--pvc", "data"}, "--pvc 'data' is neither NAME:PATH[:ro] nor [CLASS]:SIZE:PATH[:ro]"},
      {{"--pvc", ":/mnt"}, "--pvc ':/mnt' has no claim name"},
      {{"--pvc", "Data:/mnt"},
       "--pvc 'Data' is not a valid storage name; use 1 to 63 of a-z, 0-9 and '-'"},
      {{"--pvc-exists", "claimname=data"}, "--pvc-exists must contain path="},
      {{"--pvc-exists", "claimnam=data,path=/mnt"},
       "--pvc-exists has no key 'claimnam'; did you mean 'claimname'?"},
      {{"--pvc-new", "path=/mnt"}, "--pvc-new must contain size="},
      {{"--nfs-server", "nas"}, "--nfs-server is not supported; " + mount},
      {{"--s3", "bucket=b,secret=hidden"}, "--s3 is not supported; " + mount},
      {{"--configmap-volume", "name=c,path=/c"},
       "--configmap-volume is not supported; put the files into a folder of the nodes, and mount "
       "it with --volume HOST:PATH:ro"},
  };
  for (const auto& [flags, fault] : table) EXPECT_EQ(fault_of(submit_with(flags)), fault);
}

TEST(RunaiVolumes, AnInvalidSizeIsAFault) {
  EXPECT_EQ(fault_of(submit_with({"--pvc", "ssd:lots:/a"})).substr(0, 26),
            "--pvc 'lots' is not a size");
}

}  // namespace

}  // namespace muster::dialects::runai
