// The build copies this file into its copy of volcano.sh/apis 1.14.0, the newest release that the module proxy has.
// Volcano 1.15.1 is written against a later state of that module, which its own module leaves out.
package v1beta1

// QueueAllocationGateKey is the name of the scheduling gate that a queue's admission removes.
const QueueAllocationGateKey = GroupName + "/queue-allocation-gate"
