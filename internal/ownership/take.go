// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Adoption says what may be done with an object that exists and is not the owner's.
type Adoption string

const (
	// AdoptNever takes only what carries the owner's own mark. The empty string means the same.
	AdoptNever Adoption = "Never"
	// AdoptUnowned takes besides what no controller has and no instance, or one that is no more.
	AdoptUnowned Adoption = "Unowned"
	// AdoptForce takes anything from anybody.
	AdoptForce Adoption = "Force"
)

// Alive tells whether an instance with this UID exists. It must answer true when it does not know.
type Alive func(types.UID) bool

// MayTake returns nil if o may write the live object, and a *CollisionError if it may not. Without alive every instance
// counts as living.
func MayTake(live metav1.Object, o Owner, mode Adoption, alive Alive) error {
	holder, held := OwnerOf(live)
	if mode == AdoptForce || held && holder.UID == o.UID {
		return nil
	}
	collision := &CollisionError{Owner: o, Mode: mode}
	if object, ok := live.(Object); ok {
		collision.ID = IDOf(object)
	}
	collision.Controller = metav1.GetControllerOf(live)
	if held {
		collision.Holder = &holder
		collision.HolderGone = alive != nil && !alive(holder.UID)
	}
	free := collision.Controller == nil && (!held || collision.HolderGone)
	if mode == AdoptUnowned && free {
		return nil
	}
	collision.free = free
	return collision
}

// CollisionError says that an object exists which is not the owner's, and which it may not take.
type CollisionError struct {
	ID         ID
	Owner      Owner                  // who wants the object
	Mode       Adoption               // what it may take
	Holder     *Owner                 // the other instance that has it, if one does
	HolderGone bool                   // the other instance does not exist any more
	Controller *metav1.OwnerReference // the controller that has it, if one does

	free bool // Unowned would do
}

// Error says whose the object is and what to do.
func (e *CollisionError) Error() string {
	advice := "to take it set spec.strategy.adoption of the instance to Force (\"rukpak update " + e.Owner.Name + " --adoption Force\"), or rename one of the two"
	if e.free {
		advice = "to take it set spec.strategy.adoption of the instance to Unowned (\"rukpak update " + e.Owner.Name + " --adoption Unowned\"), or delete it"
	}
	return fmt.Sprintf("%s exists and %s; BundleInstance %s may not take it: %s", e.ID, e.belongs(), e.Owner, advice)
}

func (e *CollisionError) belongs() string {
	switch {
	case e.Holder != nil && e.HolderGone:
		return fmt.Sprintf("was left by BundleInstance %s, which is gone", e.Holder)
	case e.Holder != nil:
		return fmt.Sprintf("belongs to BundleInstance %s", e.Holder)
	case e.Controller != nil:
		return fmt.Sprintf("belongs to its controller %s %s", e.Controller.Kind, e.Controller.Name)
	default:
		return "belongs to nobody that is known"
	}
}
