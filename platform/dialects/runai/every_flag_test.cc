// No flag of `submit` and its variants is dropped silently: each flag changes the job or how it is
// submitted, or a note states that it has no effect, or it is refused.
#include <map>

#include "dialects/runai/submission_fixture.h"

namespace muster::dialects::runai {

namespace {

/// A value that differs from the flag's default.
std::string value_for(const cli::Flag& flag) {
  static const std::map<std::string, std::string> values{
      {"--add-capability", "SYS_PTRACE"},
      {"--annotation", "a=b"},
      {"--auto-deletion-time-after-completion", "1h"},
      {"--backoff-limit", "1"},
      {"--backoffLimit", "1"},
      {"--clean-pod-policy", "All"},
      {"--command", "true.sh"},
      {"--cpu", "1"},
      {"--cpu-limit", "1"},
      {"--environment", "A=b"},
      {"--existing-pvc", "claimname=data,path=/mnt"},
      {"--extended-resource", "a=1"},
      {"--git-sync", "source=https://x.org/a.git"},
      {"--gpu", "1"},
      {"--gpu-memory", "1G"},
      {"--image", "other"},
      {"--image-pull-policy", "Never"},
      {"--master-environment", "A=b"},
      {"--master-extended-resource", "a=1"},
      {"--master-gpu", "1"},
      {"--memory", "1G"},
      {"--memory-limit", "1G"},
      {"--new-pvc", "size=1G,path=/mnt"},
      {"--port", "80"},
      {"--pvc", "data:/mnt"},
      {"--pvc-exists", "claimname=data,path=/mnt"},
      {"--pvc-new", "size=1G,path=/mnt"},
      {"--service-type", "ingress"},
      {"--toleration", "operator=Exists"},
      {"--ttl-after-finish", "1h"},
      {"--volume", "/data:/mnt"},
      {"--volumes", "/data:/mnt"},
      {"--working-dir", "/mnt"},
  };
  const auto found = values.find(flag.name);
  return found == values.end() ? "2" : found->second;
}

/// The job without the annotation of its command line.
job::JobSpec job_of(const Submission& submission) {
  job::JobSpec spec = submission.spec;
  spec.annotations.erase("runai/commandLine");
  return spec;
}

bool is_felt(const Words& command, const cli::Flag& flag) {
  Words plain = command;
  // `--name` is recognised because it is refused together with a positional name.
  plain.insert(plain.end(), {"dist"});
  if (flag.name != "--image") plain.insert(plain.end(), {"--image", "img"});
  Words words = plain;
  words.push_back(flag.is_switch() ? flag.name : flag.name + "=" + value_for(flag));
  const ReadSubmission with = read_words(words);
  const ReadSubmission without = read_words(plain);
  return with.faults != without.faults || with.submission.notes != without.submission.notes ||
         job_of(with.submission) != job_of(without.submission) ||
         with.submission.attach != without.submission.attach ||
         with.submission.dry_run != without.submission.dry_run;
}

void expect_all_felt(const Words& path, const cli::Command& command) {
  for (const cli::Flag& flag : command.flags) {
    EXPECT_TRUE(is_felt(path, flag)) << command.name << " " << flag.name;
  }
  for (const cli::Command& child : command.commands) {
    Words below = path;
    below.push_back(child.name);
    expect_all_felt(below, child);
  }
}

TEST(RunaiFlags, AreNeverDroppedSilently) {
  for (const cli::Command& command : submit_commands()) expect_all_felt({command.name}, command);
}

}  // namespace

}  // namespace muster::dialects::runai
