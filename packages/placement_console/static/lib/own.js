// Texts of this project that come from the server, in the language of the page. The server and the audit log have them in
// English, as the commands print them; a sentence that is not in this table, such as the words of kube-scheduler, stays so.
import { language } from "./i18n.js";

// Each part "$1" of a sentence is translated in turn, and "$1*" is a list. "[… $1 …]" is left out if the sentence lacks the
// part. The first sentence that fits a text counts.
const SENTENCES = [
  // Suggestions.
  [/^ask for (.+?): the largest free block(?: in (\S+))? is (\S+?)(, and \S+ is overhead)?$/, "改为请求 $1：最大空闲块为 $3[（$2）]$4"],
  [/^(.+) instead of (\S+) in all containers together(.*)$/, "$1（所有容器合计，原为 $2）$3"],
  [/^(\S+ \S+) instead of (\S+)$/, "$1（原为 $2）"],
  [/^asked for (.+) instead of (\S+), which no node has$/, "请求 $1，而不是没有节点提供的 $2"],
  [/^asked for (.+)$/, "请求 $1"],
  [/^(\d+) nodes? can take it once the gates? (?:is|are) removed$/, "调度门移除后，$1 个节点可用"],
  [/^(\S+) can take it once (.+) (?:is|are) gone: the pod is nominated to \S+$/, "$2 离开后，$1 可用：该 Pod 已被提名到此节点"],
  [/^(\S+) (?:fits|would fit) once (.+?)( (?:without|if the pod|and if the pod) .+)?$/, "$2*后，$1 可用$3"],
  [/^(\d+) nodes? would fit( .+)$/, "$1 个节点可用$2"],
  [/^ without (.+?) and if the pod (.+)$/, "，前提是去掉$1，且该 Pod $2*"],
  [/^ without (.+)$/, "，前提是去掉$1"],
  [/^ (?:and )?if the pod (.+)$/, "，前提是该 Pod $1*"],
  [/^it is uncordoned$/, "解除封锁"],
  [/^(\d+) pods? of lower priority (?:is|are) gone$/, "$1 个低优先级的 Pod 离开"],
  [/^(\d+) pods? (?:is|are) gone$/, "$1 个 Pod 离开"],
  [/^(\S+ \S+) (?:is|are) freed$/, "释放 $1"],
  [/^host ports? (.+) (?:is|are) free$/, "主机端口 $1 空出"],
  [/^tolerated (.+)$/, "容忍 $1"],
  [/^the nodeSelector (\S+)(?: of RuntimeClass (\S+))?(?: \((?:they have|it has) (.+)\))?$/, " nodeSelector $1[（RuntimeClass $2）][（节点为 $3）]"],
  [/^the requirement (.+?)(?: \((?:they have|it has) (.+)\))?$/, "要求 $1[（节点为 $2）]"],
  [/^the host port (\S+)$/, "主机端口 $1"],
  [/^its (?:required )?(podAffinity|podAntiAffinity|topologySpreadConstraints).*$/, "其必需的 $1"],
  // Evictions.
  [/^kube-scheduler would evict (\S+) pods? on (one of at least \d+ nodes): (.+)$/, "kube-scheduler 会在$2上驱逐 $1 个 Pod：$3"],
  [/^one of at least (\d+) nodes$/, "至少 $1 个节点之一"],
  [/^kube-scheduler would evict pods on one of (.+); (\S+) victims? each, of: (.+)$/, "kube-scheduler 会在 $1 之一上各驱逐 $2 个 Pod：$3"],
  [/^kube-scheduler would evict (\S+) of these \d+ pods on (\S+): (.+)$/, "kube-scheduler 会在 $2 上驱逐其中 $1 个 Pod：$3"],
  [/^kube-scheduler would evict (\S+) pods? of lower priority on (\S+)$/, "kube-scheduler 会在 $2 上驱逐 $1 个低优先级的 Pod"],
  [/^kube-scheduler would evict (\S+) pods? on (\S+): (.+)$/, "kube-scheduler 会在 $2 上驱逐 $1 个 Pod：$3"],
  [/^(\S+) \(priority (-?\d+)(?:, (\d+) cards?)?(?:, runs for (.+?))?\)$/, "$1（优先级 $2[，$3 张卡][，已运行 $4]）"],
  [/^violates PodDisruptionBudget (\S+)$/, "违反 PodDisruptionBudget $1"],
  [/^(\S+ \S+) creates (?:it|them) again(: (?:it|they) would wait)?$/, "$1 会重新创建$2"],
  [/^: (?:it|they) would wait$/, "，但需等待"],
  [/^no controller creates (.+) again$/, "没有控制器会重新创建 $1"],
  [/^(.+) (?:is|are) (\d+) of (\d+) pods of gang (\S+?)(?:: (\d+) more cards? would idle)?$/, "$1 属于 Gang $4 的 $3 个 Pod 中的 $2 个[，另有 $5 张卡会闲置]"],
  [/^not certain: (.+)$/, "不确定：$1"],
  [/^note: (.+)$/, "注意：$1"],
  [/^node (\S+): (.+) when (.+) (?:is|are) gone: (?:it|they) should have ended (.+) ago$/, "节点 $1：$3 离开后$2，它们 $4 前就应结束"],
  [/^(\d+) cards? (?:is|are) free$/, "有 $1 张卡空闲"],
  [/^there is room$/, "有空间"],
  // Verdicts, counts and the queue.
  [/^(.+) Predicted: node constraints; the queue decides when it starts\.$/, "$1 已预测节点约束；启动时间由队列决定。"],
  [/^(.+) Not predicted: when Kueue admits the pod, by quota\.$/, "$1 未预测：Kueue 按配额准入的时间。"],
  [/^(\d+) pending pods? takes? (?:its|their) places? first: (.+)$/, "$1 个等待的 Pod 先占用位置：$2"],
  [/^(\S+ \S+): (at least )?(\d+) of (\d+) replicas fit now(?: \((.+)\))?$/, "$1：$4 个副本中$2 $3 个可立即放置[（$5）]"],
  [/^at least $/, "至少"],
  [/^(\S+ \S+): a pod on each node$/, "$1：每个节点一个 Pod"],
  [/^Hint: checked as written, but the webhook would change or refuse (.+?): create it again$/, "提示：按原样检查，但 Webhook 会修改或拒绝 $1：请重新创建"],
  [/^left out: (\d+) pending pods? of scheduler (\S+): no sign that it runs$/, "未计入：调度器 $2 的 $1 个等待的 Pod，没有迹象表明该调度器在运行"],
  [/^managed by a kubelet \(mirror pods\)$/, "由 kubelet 管理（镜像 Pod）"],
  [/^already being deleted$/, "正在删除"],
  [/^of a DaemonSet$/, "属于 DaemonSet"],
  [/^without a controller, so no pod would replace it$/, "没有控制器，因此没有 Pod 会替代它"],
  [/^protected by a PodDisruptionBudget$/, "受 PodDisruptionBudget 保护"],
  // Admissions.
  [/^no workload type$/, "没有工作负载类型"],
  [/^scheduler (\S+): no sign that it runs: (.+?)\. Without it, the pod stays Pending(.*)$/, "调度器 $1：没有迹象表明它在运行（$2）。没有它，Pod 会一直等待$3"],
  [/^(?:no API group (.+), )?no Lease and no bound pod names it$/, "[没有 API 组 $1，]没有 Lease 或已绑定的 Pod 提到它"],
  [/^; a new profile of kube-scheduler has its first sign with its first pod$/, "；kube-scheduler 的新配置要到第一个 Pod 才有迹象"],
  [/^placement check: (.+)$/, "放置检查：$1"],
  [/^suggestion: (.+)$/, "建议：$1"],
  [/^(Infeasible|Waiting): (.+)$/, "$1：$2"],
  [/^gpu-product: no node has (.+?)(; did you mean \S+)?$/, "gpu-product：没有节点有 $1$2"],
  [/^; did you mean (\S+)\?$/, "；是否指 $1？"],
  [/^scheduler (\S+) ignores preferred node affinity: the preference for nodes of (.+) has no effect$/, "调度器 $1 忽略节点的偏好亲和性：对 $2 节点的偏好无效"],
  [/^the pod is already so$/, "Pod 已满足"],
  [/^the pod has no valid gpu- annotation and requests no accelerator$/, "Pod 没有有效的 gpu- 注解，也不请求加速卡"],
  [/^bin-packing is off for this pod$/, "此 Pod 关闭了装箱"],
  [/^the type names no (?:scheduler|priority class)$/, "该类型没有指定"],
  [/^the type asks for no QoS class$/, "该类型不要求 QoS 类别"],
  [/^no queue, gang or share of a card is requested$/, "没有请求队列、Gang 或共享卡"],
  [/^kept: (.+)$/, "保留原值：$1"],
  // Refusals of the server.
  [/^(\d+) browsers are connected already$/, "已有 $1 个浏览器连接"],
  [/^the console does not answer$/, "控制台没有响应"],
  [/^(\d+) requests wait already; try again later$/, "已有 $1 个请求在等待，请稍后重试"],
  [/^too many requests; try again in a few seconds$/, "请求过多，请几秒后重试"],
  [/^internal error; the log of the console has it$/, "内部错误，详见控制台的日志"],
  [/^pod (\S+) does not wait any more$/, "Pod $1 已不再等待"],
  [/^pod (\S+) is malformed or too large to be evaluated$/, "Pod $1 格式有误或过大，无法评估"],
  [/^there is no node (.*)$/, "没有节点 $1"],
  [/^no record has the decision (.*)$/, "没有决策为 $1 的记录"],
  [/^not in this report$/, "不在此报告中"],
];
// Longer texts, which no sentence makes, could take seconds.
const MOST_CHARACTERS = 2000;
const MOST_DEPTH = 20;

export function own(text) {
  return language() === "zh" && text.length <= MOST_CHARACTERS ? translated(text, MOST_DEPTH) : text;
}

function translated(text, depth) {
  if (!depth) return text;
  for (const [sentence, form] of SENTENCES) {
    const parts = text.match(sentence);
    if (!parts) continue;
    const whole = form.replace(/\[([^\]]*\$(\d)[^\]]*)\]/g, (_, part, at) => (parts[at] ? part : ""));
    return whole.replace(/\$(\d)(\*?)/g, (_, at, isList) => (isList ? parts[at].split(/, | and /).map((each) => translated(each, depth - 1)).join("、") : translated(parts[at] ?? "", depth - 1)));
  }
  return text;
}
