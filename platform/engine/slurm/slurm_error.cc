#include "engine/slurm/slurm_error.h"

#include <array>
#include <vector>

#include "base/text.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;

namespace {

constexpr size_t kLongestSentence = 1000;

/// The controller was not reached, so nothing was done.
constexpr std::array<std::string_view, 9> kUnreachableSigns{
    "(connect failure)",
    "Could not establish a configuration source",
    "Unable to establish configuration source",
    "backup controller in standby",
    "cannot stat file",
    "DNS SRV lookup failed",
    "Munge encode failed",
    "Protocol authentication error",
    "Invalid authentication credential",
};

/// The controller was reached; it may have carried out the request.
constexpr std::array<std::string_view, 10> kReplyLost{
    "Socket timed out",
    "Zero Bytes were transmitted",
    "(receive failure)",
    "(send failure)",
    "(shutdown failure)",
    "Unexpected message received",
    "Connection reset",
    "Broken pipe",
    "Communication connection failure",
    "Header lengths are longer than data received",
};

/// The controller refuses for the moment.
constexpr std::array<std::string_view, 7> kTooMany{
    "temporarily unable to accept job",
    "Resource temporarily unavailable",
    "MaxSubmitJob",
    "GrpSubmitJob",
    "MaxJobCount",
    "Unable to create job record, try again",
    "Too many jobs",
};

template <size_t N>
bool mentions(std::string_view output, const std::array<std::string_view, N>& signs) {
  for (const std::string_view sign : signs) {
    if (output.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

/// The value of a submission that a sentence is about.
struct Subject {
  std::string_view sign;
  std::string Submission::* value;  ///< nullptr: no single value
  std::string_view noun;
  std::string_view advice;
};

constexpr std::string_view kPartitions =
    "choose another --slurm-partition; sinfo lists the partitions";
constexpr std::string_view kAccounts =
    "choose another --slurm-account; sacctmgr show associations lists the accounts";
constexpr std::string_view kSizes =
    "no node that it may use is large enough: request fewer --gpus and --cpus or less --memory for "
    "each worker, fewer workers, or another --slurm-partition; sinfo -Nl lists the nodes";

/// More specific sentences come before sentences that are part of them.
constexpr std::array kSubjects{
    Subject{"account/partition", &Submission::account, "account", kAccounts},
    Subject{"nvalid account", &Submission::account, "account", kAccounts},
    Subject{"account not permitted", &Submission::account, "account", kAccounts},
    Subject{"AccountNotAllowed", &Submission::account, "account", kAccounts},
    Subject{"QOS not permitted", &Submission::qos, "QOS",
            "choose another --slurm-qos; sacctmgr show qos lists the QOS"},
    Subject{"nvalid qos", &Submission::qos, "QOS",
            "choose another --slurm-qos; sacctmgr show qos lists the QOS"},
    Subject{"reservation", &Submission::reservation, "reservation",
            "choose another --slurm-reservation; scontrol show reservation lists the reservations"},
    Subject{"feature specification", &Submission::constraint, "constraint",
            "choose another --slurm-constraint; sinfo -o '%N %f' lists the features of the nodes"},
    Subject{"time limit",
            nullptr,
            {},
            "set a --time-limit that its partition allows; sinfo -o '%P %l' lists the limits"},
    Subject{"node name",
            nullptr,
            {},
            "a node that the job must avoid no longer exists; sinfo -N lists the nodes"},
    Subject{"group not permitted", &Submission::partition, "partition", kPartitions},
    Subject{"artition", &Submission::partition, "partition", kPartitions},
    Subject{"gres",
            nullptr,
            {},
            "Slurm has no such GPUs: choose another --gpu-model; sinfo -o '%N %G' lists the GPUs "
            "of the nodes"},
    Subject{"Memory specification", nullptr, {}, kSizes},
    Subject{"CPU count", nullptr, {}, kSizes},
    Subject{"Node count", nullptr, {}, kSizes},
    Subject{"node configuration", nullptr, {}, kSizes},
    Subject{"More processors", nullptr, {}, kSizes},
    Subject{"accounting/QOS policy",
            nullptr,
            {},
            "it exceeds a limit of its account or QOS: request less, or choose another "
            "--slurm-account or --slurm-qos"},
    Subject{"Access/permission denied",
            nullptr,
            {},
            "Slurm does not allow this user to submit jobs: ask the administrator of the cluster"},
};

const Subject* subject_of(std::string_view output) {
  for (const Subject& subject : kSubjects) {
    if (output.find(subject.sign) != std::string_view::npos) return &subject;
  }
  return nullptr;
}

/// The prefixes of all of Slurm's programs.
void drop_prefixes(std::string_view& line) {
  static constexpr std::array<std::string_view, 4> kMarks{
      ": error: ", ": fatal: ", ": Warning: ", ": warning: "};
  for (const std::string_view mark : kMarks) {
    const size_t at = line.find(mark);
    // Only after the name of a program, not within a sentence.
    if (at != std::string_view::npos && line.substr(0, at).find(' ') == std::string_view::npos) {
      line.remove_prefix(at + mark.size());
    }
  }
  static constexpr std::array<std::string_view, 4> kDeeds{
      "Batch job submission failed: ", "slurm_load_jobs error: ", "slurm_load_partitions: ",
      "slurm_load_ctl_conf error: "};
  for (const std::string_view deed : kDeeds) {
    if (line.starts_with(deed)) line.remove_prefix(deed.size());
  }
}

bool is_warning(std::string_view line) {
  return line.find(": Warning: ") != std::string_view::npos ||
         line.find(": warning: ") != std::string_view::npos;
}

Error unreachable(std::string what, std::string_view output) {
  return Error{
      .code = ErrorCode::kUnavailable,
      .what = std::move(what) + ": " + sentence_of(output),
      .advice = mentions(output, std::array<std::string_view, 3>{"Munge encode failed",
                                                                 "authentication", "credential"})
                    ? "check that munged runs here, with the key of the cluster"
                    : "check that slurmctld runs, and that SLURM_CONF names the cluster's "
                      "slurm.conf: scontrol ping"};
}

}  // namespace

std::string sentence_of(std::string_view output) {
  std::vector<std::string> sentences;
  std::vector<std::string> warnings;
  for (const std::string& each : base::split(output, '\n')) {
    std::string_view line = each;
    const bool is_minor = is_warning(line);
    drop_prefixes(line);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto& lines = is_minor ? warnings : sentences;
    if (lines.empty() || lines.back() != line) lines.emplace_back(line);
  }
  if (sentences.empty()) sentences = std::move(warnings);
  return base::shortened(base::as_utf8(base::joined(sentences, "; ")), kLongestSentence);
}

Error refusal_of(std::string_view output, const Submission& submission) {
  if (mentions(output, kReplyLost)) {
    return Error{
        .code = ErrorCode::kTimeout,
        .what = "a job was submitted to Slurm, and the answer was lost: " + sentence_of(output)};
  }
  if (mentions(output, kUnreachableSigns)) return unreachable("Slurm cannot accept a job", output);
  const std::string sentence = sentence_of(output);
  if (mentions(output, kTooMany)) {
    return Error{.code = ErrorCode::kExhausted,
                 .what = "Slurm accepts no more jobs at the moment: " + sentence};
  }
  Error error{.code = ErrorCode::kRefused, .what = "Slurm refuses the job: " + sentence};
  const Subject* subject = subject_of(output);
  if (subject == nullptr) return error;
  error.advice = subject->advice;
  if (subject->value == nullptr) return error;
  const std::string& value = submission.*subject->value;
  error.what +=
      "; its " + std::string(subject->noun) +
      (value.empty() ? " is the default, because the job names none" : " is '" + value + "'");
  return error;
}

Error failure_of(std::string_view what, std::string_view output) {
  const bool is_denied = output.find("Access/permission denied") != std::string_view::npos;
  if (is_denied) {
    return Error{.code = ErrorCode::kRefused,
                 .what = std::string(what) + ": " + sentence_of(output),
                 .advice = "ask the administrator of the cluster"};
  }
  return unreachable(std::string(what), output);
}

}  // namespace muster::engine::slurm
