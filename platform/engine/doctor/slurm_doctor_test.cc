#include <gtest/gtest.h>

#include "engine/doctor/doctor.h"
#include "engine/doctor/test_findings.h"

namespace muster::engine::doctor {

using job::Finding;

using Verdict = job::Finding::Verdict;

namespace {

SlurmFacts healthy_cluster() {
  SlurmFacts facts;
  for (const char* name : {"sbatch", "squeue", "scancel", "sinfo", "scontrol", "srun"}) {
    facts.answers[name] = good_answer(name, "slurm-wlm 22.05.8\n");
  }
  facts.answers["ping"] = good_answer("scontrol",
                                      "Slurmctld(primary) at head is UP\n"
                                      "Slurmctld(backup) at spare is DOWN\n");
  facts.answers["config"] = good_answer("scontrol",
                                        "Configuration data as of 2026-01-31T12:00:00\n"
                                        "AccountingStorageType   = accounting_storage/slurmdbd\n"
                                        "AuthType                = auth/munge\n"
                                        "ClusterName             = atlas\n");
  facts.answers["munge"] = good_answer("munge", "");
  facts.answers["dbd"] = good_answer("sacctmgr", "atlas\n");
  facts.answers["mpi"] =
      good_answer("srun",
                  "MPI plugin types are...\n\tpmix\nspecific pmix plugin versions available: "
                  "pmix_v4\n");
  facts.config_file = "/etc/slurm/slurm.conf";
  facts.has_node_program = true;
  facts.programs = "/opt/libexec";
  facts.port = 7445;
  facts.hosts = {"head", "10.0.0.1"};
  facts.folder = "/home/ada/jobs";
  facts.file_system = "nfs";
  return facts;
}

void expect(const SlurmFacts& facts, const std::string& subject, Verdict verdict,
            const std::string& part) {
  const Finding finding = finding_on(diagnose(facts), subject);
  EXPECT_EQ(finding.subject, subject);
  EXPECT_EQ(finding.verdict, verdict) << subject << ": " << finding.text;
  EXPECT_NE(finding.text.find(part), std::string::npos) << subject << ": " << finding.text;
}

TEST(SlurmDoctor, DescribesACompleteCluster) {
  const SlurmFacts facts = healthy_cluster();
  EXPECT_TRUE(can_run(diagnose(facts)));
  expect(facts, "Slurm's programs", Verdict::kFine, "version 22.05.8, /usr/bin/sbatch");
  expect(facts, "slurm.conf", Verdict::kFine, "/etc/slurm/slurm.conf");
  expect(facts, "the controller", Verdict::kFine,
         "atlas: Slurmctld(primary) at head is UP; Slurmctld(backup) at spare is DOWN");
  expect(facts, "credentials", Verdict::kFine, "the controller trusts them (auth/munge)");
  expect(facts, "slurmrestd", Verdict::kNote, "not found; Slurm's programs do not need it");
  expect(facts, "accounting", Verdict::kFine, "slurmdbd answers");
  expect(facts, "PMIx", Verdict::kFine, "srun starts MPI's ranks, pmix_v4");
  expect(facts, "muster-node", Verdict::kFine, "nodes run it from /opt/libexec");
  expect(facts, "call-backs", Verdict::kFine, "nodes connect to head, 10.0.0.1; port 7445");
  expect(facts, "folder of the jobs", Verdict::kFine, "/home/ada/jobs (nfs) seems to be shared");
}

TEST(SlurmDoctor, ReportsOnlyMissingProgramsOfSlurm) {
  SlurmFacts facts = healthy_cluster();
  facts.answers.clear();
  facts.config_file.clear();
  const job::Diagnosis diagnosis = diagnose(facts);
  EXPECT_FALSE(can_run(diagnosis));
  const Finding programs = finding_on(diagnose(facts), "Slurm's programs");
  EXPECT_EQ(programs.verdict, Verdict::kFails);
  EXPECT_EQ(programs.text, "sbatch, squeue, scancel, sinfo, scontrol, srun not found on the PATH");
  EXPECT_NE(programs.advice.find("apt install slurm-client"), std::string::npos);
  for (const char* subject : {"slurm.conf", "the controller", "munge", "accounting", "PMIx"}) {
    EXPECT_EQ(finding_on(diagnose(facts), subject).subject, "none") << subject;
  }
}

TEST(SlurmDoctor, ASlurmThatIsTooOldIsRefused) {
  for (const auto& [version, verdict] :
       {std::pair("20.11.9", Verdict::kFails), std::pair("21.08.0", Verdict::kFine),
        std::pair("25.05.1", Verdict::kFine), std::pair("from-git", Verdict::kFine)}) {
    SlurmFacts facts = healthy_cluster();
    facts.answers["sbatch"].output = "slurm " + std::string(version) + "\n";
    expect(facts, "Slurm's programs", verdict, version);
  }
}

TEST(SlurmDoctor, ReportsAControllerThatDoesNotAnswer) {
  SlurmFacts facts = healthy_cluster();
  facts.answers["ping"] = {.path = "/usr/bin/scontrol",
                           .code = 1,
                           .output = "Slurmctld(primary) at head is DOWN\n****\n"};
  facts.answers["config"] = {.path = "/usr/bin/scontrol", .code = 1, .errors = "no\n"};
  facts.answers["munge"] = {.path = "/usr/bin/munge", .code = 6, .errors = "munge: no socket\n"};
  EXPECT_FALSE(can_run(diagnose(facts)));
  expect(facts, "the controller", Verdict::kFails,
         "does not answer: Slurmctld(primary) at head is DOWN");
  // The authentication of the cluster is unknown now.
  expect(facts, "munge", Verdict::kLacks, "munge: no socket");
  EXPECT_EQ(finding_on(diagnose(facts), "accounting").subject, "none");

  facts.answers["sbatch"] =
      facts.answers["mpi"] = {.path = "/usr/bin/sbatch", .code = 1, .errors = "no configuration\n"};
  expect(facts, "Slurm's programs", Verdict::kFine, "found, /usr/bin/sbatch");
  EXPECT_EQ(finding_on(diagnose(facts), "PMIx").subject, "none");

  facts.answers["ping"] = {.path = "/usr/bin/scontrol", .was_late = true};
  facts.config_file.clear();
  expect(facts, "the controller", Verdict::kFails, "it did not answer in time");
  expect(facts, "slurm.conf", Verdict::kLacks, "not found");
}

TEST(SlurmDoctor, ChecksMungeIfTheControllerShowsNoTrust) {
  SlurmFacts facts = healthy_cluster();
  facts.answers["munge"] = {};
  EXPECT_EQ(finding_on(diagnose(facts), "munge").subject, "none");
  facts.answers["config"] = {.path = "/usr/bin/scontrol", .code = 1, .errors = "denied\n"};
  expect(facts, "munge", Verdict::kLacks, "is not installed");
  facts.answers["munge"] = good_answer("munge", "");
  expect(facts, "munge", Verdict::kFine, "answers");
}

TEST(SlurmDoctor, AConfiguredSlurmrestdReplacesPrograms) {
  SlurmFacts facts = healthy_cluster();
  facts.answers.clear();
  facts.rest = RestFacts{.place = "unix:///run/slurmrestd.sock", .is_configured = true};
  facts.rest->answer = slurm::ClientFacts{.way = "w", .version = "23.11.4", .api = "v0.0.40"};
  EXPECT_TRUE(can_run(diagnose(facts)));
  expect(facts, "Slurm's programs", Verdict::kNote, "not found");
  expect(facts, "slurmrestd", Verdict::kFine,
         "unix:///run/slurmrestd.sock: v0.0.40, Slurm 23.11.4");

  facts.rest->answer = base::Error{.what = "nobody listens there", .advice = "start it"};
  expect(facts, "slurmrestd", Verdict::kFails,
         "unix:///run/slurmrestd.sock does not answer: nobody listens there");
  facts = healthy_cluster();
  facts.rest = RestFacts{.place = "unix:///run/slurmrestd.sock"};
  facts.rest->answer = slurm::ClientFacts{.way = "w", .version = "22.05.8", .api = "v0.0.38"};
  expect(facts, "slurmrestd", Verdict::kNote, "v0.0.38");
  EXPECT_NE(finding_on(diagnose(facts), "slurmrestd")
                .advice.find("--slurm-rest unix:///run/slurmrestd.sock"),
            std::string::npos);
}

TEST(SlurmDoctor, ReportsThatTheNodesCannotBeListed) {
  SlurmFacts facts = healthy_cluster();
  facts.answers["nodes"] = {
      .path = "/usr/bin/sinfo", .code = 1, .errors = "slurm_load_node: Access/permission denied\n"};
  expect(facts, "nodes", Verdict::kLacks,
         "cannot be listed: slurm_load_node: Access/permission denied");
  EXPECT_NE(finding_on(diagnose(facts), "nodes").advice.find("PrivateData=nodes"),
            std::string::npos);
  EXPECT_TRUE(can_run(diagnose(facts)));
  facts.answers["ping"] = {.path = "/usr/bin/scontrol", .code = 1, .errors = "no\n"};
  EXPECT_EQ(finding_on(diagnose(facts), "nodes").subject, "none");
}

TEST(SlurmDoctor, ExplainsOnlyARefusalByPrivateData) {
  for (const auto& [errors, advice] :
       {std::pair("slurm_load_node: Access/permission denied\n", "PrivateData=nodes"),
        std::pair("sinfo: error: invalid field requested\n", "run sinfo --Node")}) {
    SlurmFacts facts = healthy_cluster();
    facts.answers["nodes"] = {.path = "/usr/bin/sinfo", .code = 1, .errors = errors};
    const std::string given = finding_on(diagnose(facts), "nodes").advice;
    EXPECT_NE(given.find(advice), std::string::npos) << errors << given;
    EXPECT_EQ(given.find("PrivateData") != std::string::npos,
              std::string(advice) == "PrivateData=nodes")
        << errors << given;
  }
}

TEST(SlurmDoctor, ReportsAMissingDatabaseAndPmix) {
  SlurmFacts facts = healthy_cluster();
  facts.answers["dbd"] = {
      .path = "/usr/bin/sacctmgr", .code = 1, .errors = "sacctmgr: error: refused\n"};
  expect(facts, "accounting", Verdict::kLacks,
         "slurmdbd does not answer (sacctmgr: error: refused)");
  facts.answers["config"].output = "AccountingStorageType = (null)\n";
  expect(facts, "accounting", Verdict::kNote, "there is no slurmdbd: jobs that ended");
  facts.answers["mpi"].output = "MPI plugin types are...\n\tnone\n\tpmi2\n";
  expect(facts, "PMIx", Verdict::kLacks, "srun --mpi=list has no pmix");
  EXPECT_TRUE(can_run(diagnose(facts)));
}

TEST(SlurmDoctor, ChecksThatNodesCanReachThisMachine) {
  SlurmFacts facts = healthy_cluster();
  facts.port = 0;
  expect(facts, "call-backs", Verdict::kFine, "a port that is chosen at the first start");
  facts.hosts = {"localhost", "127.0.0.1"};
  expect(facts, "call-backs", Verdict::kLacks, "localhost, 127.0.0.1");
  facts.server_runs = true;
  expect(facts, "call-backs", Verdict::kLacks, "held by the server that runs");
  facts.cannot_bind = base::Error{.what = "cannot listen at 0.0.0.0:7445: in use"};
  expect(facts, "call-backs", Verdict::kFails, "cannot listen at 0.0.0.0:7445");
  facts = healthy_cluster();
  facts.has_node_program = false;
  expect(facts, "muster-node", Verdict::kFails, "is not in /opt/libexec");
}

TEST(SlurmDoctor, ComparesTheFolderWithItsConfiguration) {
  SlurmFacts facts = healthy_cluster();
  facts.file_system = "ext4";
  expect(facts, "folder of the jobs", Verdict::kFine, "seems to be local to this machine");
  facts.sharing = node::Sharing::kYes;
  expect(facts, "folder of the jobs", Verdict::kLacks, "slurm.shared is set to yes");
  facts.sharing = node::Sharing::kNo;
  expect(facts, "folder of the jobs", Verdict::kFine, "nodes do not check it");
  EXPECT_EQ(is_shared_type("lustre"), true);
  EXPECT_EQ(is_shared_type("xfs"), false);
  EXPECT_EQ(is_shared_type("9p"), std::nullopt);
}

}  // namespace
}  // namespace muster::engine::doctor
