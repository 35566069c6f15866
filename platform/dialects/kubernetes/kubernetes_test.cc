#include "dialects/kubernetes/kubernetes.h"

#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

const std::string kJob = simple_job({"command: [ls]"});

std::string named(const std::string& name) {
  std::string text = kJob;
  text.replace(text.find("name: train"), 11, "name: " + name);
  return text;
}

TEST(KubernetesFile, HasSeveralJobs) {
  const TranslatedFile file =
      translated("---\n" + named("a") + "---\n# nothing\n---\n" + named("b"));
  ASSERT_EQ(file.faults, Lines{});
  ASSERT_EQ(file.jobs.size(), 2U);
  EXPECT_EQ(file.jobs[0].spec.name, "a");
  EXPECT_EQ(file.jobs[1].spec.name, "b");
}

TEST(KubernetesFile, ReportsTheFaultsOfAllItsJobsByLine) {
  const auto documents = config::parse_yaml_documents(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: A}\nspec: {template: {spec: {containers: "
      "[{image: a, command: [ls]}]}}}\n---\n" +
      simple_job({"command: [ls]", "lifecycle: {postStart: {}}"}));
  ASSERT_TRUE(documents);
  base::FakeRandom random;
  const auto result =
      translate(*documents, "f.yaml", {.defaults = {.folder = "/"}, .random = random});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "'f.yaml' has 2 faults");
  ASSERT_EQ(result.error().faults.size(), 2U);
  EXPECT_EQ(result.error().faults[0].field, "metadata.name");
  EXPECT_EQ(result.error().faults[0].line, 3);
  EXPECT_EQ(result.error().faults[1].field, "spec.template.spec.containers[0].lifecycle");
  EXPECT_EQ(result.error().faults[1].line, 17);
}

TEST(KubernetesFile, MayBeAList) {
  const TranslatedFile file = translated(
      "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{\"apiVersion\": \"batch/v1\", "
      "\"kind\": \"Job\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"template\": {\"spec\": "
      "{\"containers\": [{\"image\": \"a:1\", \"command\": [\"ls\"], \"x\": 1}]}}}}]}");
  EXPECT_EQ(file.faults, (Lines{"items[0].spec.template.spec.containers[0].x: is an unknown key"}));
}

TEST(KubernetesFile, SkipsObjectsThatMusterDoesNotNeed) {
  const TranslatedFile file = translated(
      "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: "
      "PersistentVolumeClaim\nmetadata: {name: a}\nspec: {x: y}\n---\n" +
      kJob);
  EXPECT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.warnings,
            (Lines{"the Service is not used: tasks of a job find each other by their "
                   "host names",
                   "the PersistentVolumeClaim is not used: a claim is a folder of the "
                   "project, whose size and class are not enforced"}));
}

TEST(KubernetesFile, NamesObjectsThatItCannotRun) {
  const std::string head = "metadata: {name: a}\n---\n";
  EXPECT_EQ(
      faults_of("apiVersion: kubeflow.org/v1\nkind: XGBoostJob\n" + head +
                "apiVersion: kubeflow.org/v1alpha1\nkind: TFJob\n" + head +
                "apiVersion: v1\nkind: Secret\n" + head + "name: x\ncommand: [ls]\n---\n" + kJob),
      (Lines{
          "kind XGBoostJob of kubeflow.org/v1 is not supported; the kinds are MPIJob, PyTorchJob, "
          "TFJob, TrainJob, Job and CronJob",
          "is TFJob of kubeflow.org/v1alpha1; Muster reads kubeflow.org/v1",
          "is a Secret, whose values do not belong in a job file; store each with 'muster secret "
          "set', and remove it",
          "is not a Kubernetes object: it has no apiVersion and kind"}));
  EXPECT_EQ(faults_of("apiVersion: v1\nkind: Service\n"), (Lines{"contains no job"}));
}

TEST(KubernetesFile, HasEachConfigMapOnce) {
  const std::string map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {";
  EXPECT_EQ(faults_of(map + "x: '1'}\n---\n" + map + "y: '2'}\n---\n" + kJob),
            (Lines{"ConfigMap 'a' is given twice"}));
}

TEST(KubernetesFile, HasItsMetadataAsLabelsAndAnnotations) {
  std::string text = kJob;
  text.replace(text.find("{name: train}"), 13,
               "{generateName: train-, namespace: lab, labels: {team: vision, "
               "kueue.x-k8s.io/queue-name: team-a}, annotations: {note: x}, uid: 1}");
  const TranslatedFile file = translated(text);
  ASSERT_EQ(file.faults, Lines{});
  const job::JobSpec& spec = file.jobs[0].spec;
  EXPECT_EQ(spec.name.size(), 11U);
  EXPECT_TRUE(spec.name.starts_with("train-"));
  EXPECT_EQ(spec.labels, (Settings{{"team", "vision"}}));
  EXPECT_EQ(spec.annotations.at("note"), "x");
  EXPECT_EQ(spec.project, "team-a");
  EXPECT_EQ(
      file.warnings,
      (Lines{"metadata.namespace: has no effect: the job is submitted to a project of Muster, "
             "which --set project=NAME chooses"}));
}

TEST(KubernetesFile, HasThePriorityOfKueueOnlyIfMusterHasIt) {
  const auto with_class = [](const std::string& name) {
    std::string text = kJob;
    text.replace(text.find("{name: train}"), 13,
                 "{name: train, labels: {kueue.x-k8s.io/priority-class: " + name + "}}");
    return translated_with({.on_kubernetes = true}, text);
  };
  const TranslatedFile known = with_class("inference");
  ASSERT_EQ(known.faults, Lines{});
  EXPECT_EQ(known.warnings, Lines{});
  EXPECT_EQ(known.jobs[0].spec.scheduling.purpose, job::Purpose::kInference);
  const TranslatedFile other = with_class("production");
  ASSERT_EQ(other.faults, Lines{});
  EXPECT_EQ(other.jobs[0].spec.kubernetes.priority_class, "");
  EXPECT_EQ(other.warnings,
            (Lines{"metadata.labels.kueue.x-k8s.io/priority-class: 'production' names a "
                   "WorkloadPriorityClass of Kueue, which Muster does not read; set the priority "
                   "with --set scheduling.priority=N"}));
}

TEST(KubernetesFile, IsChangedByFlags) {
  const TranslatedFile file = translated_with(
      {.name = "second", .settings = {"project=lab", "environment.LR=1", "scheduling.retries=0"}},
      kJob);
  ASSERT_EQ(file.faults, Lines{});
  const job::JobSpec& spec = file.jobs[0].spec;
  EXPECT_EQ(spec.name, "second");
  EXPECT_EQ(spec.project, "lab");
  EXPECT_EQ(spec.environment, (Settings{{"LR", "1"}}));
  EXPECT_EQ(spec.scheduling.retries, 0);
  EXPECT_EQ(translated_with({.settings = {"wrokers=1"}}, kJob).faults.size(), 1U);
  EXPECT_EQ(translated_with({.name = "x"}, named("a") + "---\n" + named("b")).faults.front(),
            "--name: is for one job, and the file has several");
  EXPECT_EQ(faults_of(kJob + "---\n" + kJob), (Lines{"metadata.name: 'train' is the name of two "
                                                     "jobs"}));
}

TEST(KubernetesFile, IsBounded) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'h'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + std::string(1, c) + " [*" + before;
    for (int i = 0; i < 9; ++i) bomb += ", *" + before;
    bomb += "]\n";
  }
  ASSERT_EQ(faults_of(bomb).size(), 1U);
  EXPECT_EQ(faults_of(bomb)[0], "too much: more than 32 levels or 100000 values");
  std::string many;
  for (int i = 0; i < 101; ++i) many += "---\na: b\n";
  EXPECT_EQ(faults_of(many), (Lines{"more than 100 documents"}));
  EXPECT_EQ(faults_of(std::string((1 << 20) + 1, ' ')), (Lines{"is larger than 1 MiB"}));
}

}  // namespace
}  // namespace muster::dialects::kubernetes
